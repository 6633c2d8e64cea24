#!/usr/bin/env bash
# Pretrains configs/base.py for a limited time on one large GPU (H100 class), without network.
#
#   bash launch/pretrain_gpu.sh --collect-wheels   # once, where there is a network
#   bash launch/pretrain_gpu.sh                    # on the GPU's machine, in the repository's root
#   python launch/weight_pieces.py join OUT nsode_jax/weights/base   # afterwards, anywhere
#
# Checks the machine and installs what it lacks from wheels/, measures the device and the
# generator of examples to choose the batch and the number of steps (launch/pretrain_plan.py),
# trains, goes on from shipped weights of the same model if there are any, scores the
# weights (launch/pretrain_scores.py), and leaves under $OUT:
#
#   weights.npz.0 ...   the weights in pieces of at most 15 MiB, and pieces.json
#   result.json         one line: card, samples, samples/s, validation, scores
#   metrics.jsonl       the metrics of the run
#   pretrain.log        all that was printed
#
# Pieces are written after every save, so that a run that is killed leaves the last ones.
# SIGTERM ends the training, then the rest is written without scores. The exit code is 0,
# 143 after SIGTERM, 2 if the machine lacks something, 1 if there are no weights.
#
# Settings, all from the environment:
#   RUNS           folder of runs, compiled programs and rates (runs/pretrain_gpu)
#   OUT            where results go                           (RUNS/out)
#   TIME_LIMIT     seconds in all                             (560)
#   EVAL_SECONDS   of these for the scores; 0 for none        (TIME_LIMIT/7, 80)
#   CONFIG         config file                                (configs/base.py)
#   OVERRIDES      more flags of nsode_jax.train              (none)
#   BATCH_SIZES    batch sizes to choose from                 (256,512,1024,2048)
#   WORKERS        processes that draw examples               (all cores but one)
#   INIT_FROM      weights to start from: a name, a folder, or `none`
#                                                             (shipped ones of this model)
#   PIECE_BYTES    most bytes of a piece                      (15 MiB)
#   PYTHON         the interpreter                            (python3)
#   DRY_RUN=1      the same on a CPU with a tiny model: 20 steps, about a minute
#
# A second run on the same machine finds compiled programs and measured rates in RUNS and
# trains a minute longer: TIME_LIMIT=180 EVAL_SECONDS=40 makes a good rehearsal.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

PYTHON=${PYTHON:-python3}
DRY_RUN=${DRY_RUN:-0}
WHEELS=wheels
TRAVELS_MIB=60 # What may travel to the machine, of the 64 MiB that fit.

# Packages in pure Python that the machine may lack, as module:package.
CARRIED=(absl:absl-py jaxtyping:jaxtyping wadler_lindig:wadler_lindig
  ml_collections:ml_collections tensorboardX:tensorboardX)
# Those that it must have.
PRESENT=(jax flax optax orbax.checkpoint numba scipy sympy yaml google.protobuf)

complain() {
  echo "pretrain_gpu: $*" >&2
}

collect_wheels() {
  "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --python-version 3.12 --constraint requirements.txt \
    --dest "$WHEELS" "${CARRIED[@]#*:}" || exit 2
  local bytes
  bytes=$({ git ls-files -z --cached --others --exclude-standard; printf '%s\0' "$WHEELS"/*.whl; } |
    sort -zu | while IFS= read -r -d '' file; do [ -f "$file" ] && stat -c %s "$file"; done |
    awk '{ sum += $1 } END { print sum }')
  echo "$(du -ck "$WHEELS"/*.whl | tail -1 | cut -f1) KiB in $WHEELS/;" \
    "with the repository $((bytes / 1048576)) MiB travel of at most $TRAVELS_MIB"
  [ "$bytes" -le $((TRAVELS_MIB * 1048576)) ] || { complain "that is too much"; exit 2; }
}

case "${1:-}" in
"") ;;
--collect-wheels) collect_wheels; exit ;;
*) complain "unknown argument $1; the settings are listed at the top of $0"; exit 2 ;;
esac

RUNS=${RUNS:-$PWD/runs/pretrain_gpu}
OUT=${OUT:-$RUNS/out}
TIME_LIMIT=${TIME_LIMIT:-560}
EVAL_SECONDS=${EVAL_SECONDS:-$((TIME_LIMIT / 7))}
CONFIG=${CONFIG:-configs/base.py}
CORES=$(nproc)
WORKERS=${WORKERS:-$((CORES > 1 ? CORES - 1 : 1))}
PIECE_BYTES=${PIECE_BYTES:-$((15 * 1024 * 1024))}
# A folder for each run: checkpoints of an earlier one must not be resumed.
mkdir -p "$OUT" "$RUNS" || exit 2
RUNS=$(cd "$RUNS" && pwd) OUT=$(cd "$OUT" && pwd)
WORKDIR=$(mktemp -d "$RUNS/run.XXXXXX") || exit 2
SITE=$WORKDIR/site
exec > >(tee -a "$OUT/pretrain.log") 2>&1
tee=$!
# Whoever started this script may end what it leaves running, so the log comes first.
finish() {
  exec >&- 2>&-
  for _ in {1..20}; do
    kill -0 "$tee" || break
    sleep 0.1
  done
}
trap finish EXIT

export PYTHONPATH="$SITE:$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$RUNS/compiled}
# One thread for each worker: they are as many as the cores.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1

plan_flags=(--batch_sizes="${BATCH_SIZES:-256,512,1024,2048}" --measured="$RUNS/measured.json")
score_flags=()
overrides=(--config.training.data_workers="$WORKERS" --config.model.dtype=bfloat16)
if [ "$DRY_RUN" = 1 ]; then
  export JAX_PLATFORMS=cpu XLA_FLAGS="${XLA_FLAGS:-} --xla_backend_optimization_level=0"
  plan_flags+=(--batch_sizes="${BATCH_SIZES:-8,16}" --draw_seconds=0.5 --max_steps=20)
  score_flags=(--sets textbook --limit 8 --beams 8)
  overrides+=(--config.model.layers=1 --config.model.width=32 --config.model.heads=2
    --config.model.hidden_width=64 --config.model.max_length=12
    # As planned, so that the plan has compiled the program already.
    --config.training.steps=20 --config.training.warmup_steps=1)
fi
case "${INIT_FROM:-}" in
"") ;;
none) plan_flags+=(--nosearch_weights) ;;
*) overrides+=(--config.training.init_from="$INIT_FROM") ;;
esac
read -r -a more <<<"${OVERRIDES:-}"
overrides+=("${more[@]}")

# Runs a command with a time limit in the background, where a trap can reach it, and
# keeps the pieces up to date.
child=0 stopped=0
run_for() {
  local seconds=$1
  shift
  timeout -k 20 "$seconds" "$@" &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    sleep 0.5
    save_pieces
  done
  wait "$child"
}
stop() {
  stopped=1
  complain "told to stop after ${SECONDS} s"
  [ "$child" = 0 ] || kill -TERM "$child" 2>/dev/null
}
trap stop TERM INT

save_pieces() {
  if [ "$WORKDIR/weights/model.json" -nt "$OUT/pieces.json" ]; then
    # Fails while weights are being written, and is tried again.
    "$PYTHON" launch/weight_pieces.py split "$WORKDIR/weights" "$OUT" --bytes "$PIECE_BYTES" \
      2>/dev/null
  fi
  [ ! -f "$WORKDIR/metrics.jsonl" ] || cp "$WORKDIR/metrics.jsonl" "$OUT/metrics.jsonl"
}

# --- 1. What is there ---------------------------------------------------------

missing_of() {
  "$PYTHON" - "$@" <<'PYTHON_END'
import importlib.util, sys

def missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except ImportError:
        return True

print(*(name for name in sys.argv[1:] if missing(name)))
PYTHON_END
}

lacking=$(missing_of "${PRESENT[@]}") || { complain "$PYTHON does not run"; exit 2; }
[ -z "$lacking" ] || { complain "this machine must have: $lacking"; exit 2; }
install=()
for module in $(missing_of "${CARRIED[@]%%:*}"); do
  for pair in "${CARRIED[@]}"; do
    [ "${pair%%:*}" != "$module" ] || install+=("${pair#*:}")
  done
done
if [ "${#install[@]}" -gt 0 ]; then
  echo "installing from $WHEELS/: ${install[*]}"
  "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
    --no-cache-dir --find-links "$WHEELS" --target "$SITE" "${install[@]}" || {
    complain "run \`bash launch/pretrain_gpu.sh --collect-wheels\` where there is a network," \
      "and carry $WHEELS/"
    exit 2
  }
fi
if [ "$DRY_RUN" != 1 ]; then
  timeout -k 5 120 "$PYTHON" -c '
import sys, jax
print(sys.version.split()[0], "jax", jax.__version__, jax.devices(), flush=True)
sys.exit(jax.default_backend() != "gpu")' || { complain "JAX sees no GPU"; exit 2; }
fi

# --- 2. What it can do, and the training --------------------------------------

training_seconds=$((TIME_LIMIT - SECONDS - EVAL_SECONDS))
run_for "$training_seconds" "$PYTHON" launch/pretrain_plan.py --config "$CONFIG" \
  --workdir "$WORKDIR" --seconds "$training_seconds" "${plan_flags[@]}" "${overrides[@]}" || {
  complain "no plan"
  exit $((stopped ? 143 : 1))
}
mapfile -t planned <"$WORKDIR/plan.flags"
echo "after ${SECONDS} s: ${planned[*]}"
if [ "$stopped" = 0 ]; then
  # The plan ends in time by itself; this is for a run that hangs.
  run_for $((TIME_LIMIT - SECONDS - EVAL_SECONDS / 2)) "$PYTHON" -m nsode_jax.train \
    --config "$CONFIG" --workdir "$WORKDIR" "${planned[@]}" "${overrides[@]}" ||
    complain "training ended with code $?"
fi
child=0

# --- 3. Scores and results ----------------------------------------------------

save_pieces
[ "$stopped" = 0 ] || EVAL_SECONDS=0
if [ ! -f "$OUT/pieces.json" ]; then
  complain "no weights were written"
  EVAL_SECONDS=0
fi
left=$((TIME_LIMIT - SECONDS))
echo "after ${SECONDS} s: scores"
run_for $((left > 20 ? left : 20)) "$PYTHON" launch/pretrain_scores.py --workdir "$WORKDIR" \
  --out "$OUT" --seconds $((EVAL_SECONDS > 0 && left > 15 ? left - 10 : 0)) \
  --workers "$WORKERS" --before "$SECONDS" "${score_flags[@]}" || complain "no scores: code $?"
echo "after ${SECONDS} s: done; results are in $OUT"
[ -f "$OUT/pieces.json" ] || exit 1
[ "$stopped" = 0 ] || exit 143
