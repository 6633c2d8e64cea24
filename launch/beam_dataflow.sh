#!/usr/bin/env bash
# Generates a stored data set on Google Cloud Dataflow.
#
#   export PROJECT=my-project BUCKET=gs://my-bucket IMAGE=my-registry/nsode-beam:latest
#   bash launch/beam_dataflow.sh image generate fetch
#
# `image` builds and pushes the workers' image, `generate` runs the job, `fetch` copies the
# data set into DATA_DIR and converts it: Dataflow's workers share a bucket, ArrayRecord
# cannot be written to a bucket, so the job writes TFRecord. The steps are done in the order
# given. The examples are those of `python -m nsode_jax.generate`, bit by bit; compare the
# counts. A job that fails starts from nothing. First the steps "Before you begin" of
# https://cloud.google.com/dataflow/docs/quickstarts, Docker for `image`, and
#
#   pip install -e '.[tfds-cli]' 'apache-beam[gcp]'
#
# Settings, all from the environment:
#   CONFIG        small, base or paper: a file in configs/        (base)
#   PROJECT, BUCKET                                               (required)
#   REGION        where the job runs                              (us-central1)
#   IMAGE         name of the workers' image                      (required)
#   WORKERS       at most so many machines                        (100)
#   DATA_DIR      where `fetch` puts the data set                 (nsode_data)
#   PYTHON        the interpreter                                 (python3)
#   BEAM_VERSION  of Apache Beam                                  (the installed one)
#   DRY_RUN=1     only print the commands
#
# Run by us: with stand-ins for docker, tfds and gcloud (tests/launch_test.py), the
# conversion also in earnest. The other options follow the documentation of TFDS
# (https://www.tensorflow.org/datasets/beam_datasets) and Dataflow
# (https://cloud.google.com/dataflow/docs/reference/pipeline-options).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "beam_dataflow.sh: error: $*" >&2
  exit 2
}
print_or_run() {
  if [ "${DRY_RUN:-0}" = 1 ]; then
    printf '%q ' "$@"
    echo
  else
    "$@"
  fi
}
needs() {
  [ "${DRY_RUN:-0}" = 1 ] || command -v "$1" >/dev/null || fail "there is no $1 here"
}

CONFIG=${CONFIG:-base}
REGION=${REGION:-us-central1}
WORKERS=${WORKERS:-100}
DATA_DIR=${DATA_DIR:-nsode_data}
PYTHON=${PYTHON:-python3}
[ $# -gt 0 ] || fail "name what to do, of: image generate fetch"
[ -f "configs/$CONFIG.py" ] || fail "there is no config file configs/$CONFIG.py"
[ -n "${PROJECT:-}" ] || fail "set PROJECT, the Google Cloud project"
[[ ${BUCKET:-} == gs://?* ]] || fail "set BUCKET, as in gs://my-bucket"
[ -n "${IMAGE:-}" ] || fail "set IMAGE, the name of the workers' image"
[[ $WORKERS =~ ^[1-9][0-9]{0,4}$ ]] || fail "WORKERS must be a number from 1 to 99999, not '$WORKERS'"
# `tfds build` splits its options at every comma.
[[ $PROJECT$REGION$BUCKET$IMAGE != *,* ]] || fail "no setting may contain a comma"
for step in "$@"; do
  case $step in
  image) needs docker ;;
  generate) needs tfds ;;
  fetch) needs tfds && needs gcloud ;;
  *) fail "unknown step $step, not one of: image generate fetch" ;;
  esac
done

image() {
  local beam=${BEAM_VERSION:-} python
  [ -n "$beam" ] || beam=$("$PYTHON" -c 'import apache_beam; print(apache_beam.__version__)' \
    2>/dev/null) || fail "install Apache Beam or set BEAM_VERSION"
  python=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  print_or_run rm -rf dist/beam
  print_or_run "$PYTHON" -m pip wheel --quiet --no-deps --wheel-dir dist/beam .
  print_or_run docker build --tag "$IMAGE" --file launch/beam_worker.Dockerfile \
    --build-arg "BEAM=$beam" --build-arg "PYTHON=$python" \
    --build-arg MORE="tensorflow mlcroissant" dist/beam
  print_or_run docker push "$IMAGE"
}

generate() {
  local options=(runner=DataflowRunner "project=$PROJECT" "region=$REGION"
    "job_name=nsode-$CONFIG" "max_num_workers=$WORKERS" "sdk_container_image=$IMAGE"
    "staging_location=$BUCKET/binaries" "temp_location=$BUCKET/temp")
  print_or_run tfds build data_builders/nsode --config "$CONFIG" --file_format tfrecord \
    --data_dir "$BUCKET/nsode_data" \
    --beam_pipeline_options="$(IFS=, && echo "${options[*]}")"
}

fetch() {
  print_or_run mkdir -p "$DATA_DIR/nsode"
  print_or_run gcloud storage cp --recursive "$BUCKET/nsode_data/nsode/$CONFIG" "$DATA_DIR/nsode"
  # In place: with --out_dir TFDS 4.9.10 leaves out dataset_info.json.
  print_or_run tfds convert_format --dataset_dir "$DATA_DIR/nsode" --out_file_format array_record
  print_or_run find "$DATA_DIR/nsode/$CONFIG" -name '*.tfrecord-*' -delete
}

for step in "$@"; do
  "$step"
done
