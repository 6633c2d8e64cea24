#!/usr/bin/env bash
# Trains on a slice of TPU VMs: one process on each machine of the slice, all its chips.
#
#   export TPU=my-tpu ZONE=us-east5-b ACCELERATOR=v6e-16 VERSION=v2-alpha-tpuv6e
#   export NFS=10.0.0.2:/share WORKDIR=/mnt/nsode_jax/run
#   bash launch/tpu_vm.sh create install train
#   bash launch/tpu_vm.sh log                        # Ctrl-C leaves the training alone
#   bash launch/tpu_vm.sh stop delete                # stop: saves a checkpoint, and ends
#
# The steps are done in the order given. `install` takes the last commit to all machines,
# and mounts the shared folder; `train` goes on from the newest checkpoint, also on a new
# slice. The machines find each other by themselves. When one dies the others end; `train`
# starts all again. A spot slice that was taken away has to be deleted and created first.
#
# Settings, all from the environment:
#   TPU, ZONE    name and zone of the slice                      (required)
#   PROJECT      Google Cloud project                            (gcloud's)
#   ACCELERATOR  kind and size of the slice                      (v6e-8)
#   VERSION      software of the machines                        (v2-alpha-tpuv6e)
#   SPOT=1       a slice that may be taken away, for less
#   NFS          HOST:/PATH of a shared folder such as Filestore's, mounted at
#                /mnt/nsode_jax                                  (none)
#   WORKDIR      for train: a folder that all machines see       (required)
#   CONFIG       for train: config file                          (configs/base.py)
#   FLAGS        more flags of nsode_jax.train, for the machines' shell
#                    (--config.model.dtype=bfloat16 --config.training.data_workers=$(nproc))
#   DISTRIBUTED  0 for a slice of a single machine               (1)
#   DRY_RUN=1    only print the commands
#
# Run by us: with a stand-in for gcloud (tests/launch_test.py); the commands' options were
# checked against gcloud 528. Not run on a TPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "tpu_vm.sh: error: $*" >&2
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

MOUNT=/mnt/nsode_jax
CONFIG=${CONFIG:-configs/base.py}
DISTRIBUTED=${DISTRIBUTED:-1}
[ $# -gt 0 ] || fail "name what to do, of: create install train log stop delete"
[ -n "${TPU:-}" ] || fail "set TPU, the name of the slice"
[ -n "${ZONE:-}" ] || fail "set ZONE, the zone of the slice"
[[ $DISTRIBUTED =~ ^[01]$ ]] || fail "DISTRIBUTED must be 0 or 1, not '$DISTRIBUTED'"
[ -f "${CONFIG%%:*}" ] || fail "there is no config file $CONFIG"
for step in "$@"; do
  case $step in
  create | install | log | stop | delete) ;;
  train) [ -n "${WORKDIR:-}" ] || fail "set WORKDIR, a folder that all machines see" ;;
  *) fail "unknown step $step, not one of: create install train log stop delete" ;;
  esac
done
[ "${DRY_RUN:-0}" = 1 ] || command -v gcloud >/dev/null || fail "there is no gcloud here"

# The number of cores is that of the machine that trains.
# shellcheck disable=SC2016
FLAGS=${FLAGS-'--config.model.dtype=bfloat16 --config.training.data_workers=$(nproc)'}
where=(--zone="$ZONE")
[ -z "${PROJECT:-}" ] || where+=(--project="$PROJECT")
tpu_vm() { # COMMAND ARGUMENTS
  local command=$1
  shift
  print_or_run gcloud compute tpus tpu-vm "$command" "$@" "${where[@]}"
}
on() { # WORKER SHELL-COMMAND
  tpu_vm ssh "$TPU" --worker="$1" --command="$2"
}

create() {
  local options=(--accelerator-type="${ACCELERATOR:-v6e-8}" --version="${VERSION:-v2-alpha-tpuv6e}")
  [ "${SPOT:-0}" != 1 ] || options+=(--spot)
  tpu_vm create "$TPU" "${options[@]}"
}

install() {
  local archive=${TMPDIR:-/tmp}/nsode_jax.tar.gz mount=
  print_or_run git archive --format=tar.gz --output="$archive" HEAD
  tpu_vm scp "$archive" "$TPU:nsode_jax.tar.gz" --worker=all
  if [ -n "${NFS:-}" ]; then
    mount="sudo apt-get install -y -q nfs-common
      sudo mkdir -p $MOUNT
      mountpoint -q $MOUNT || sudo mount -t nfs $(printf %q "$NFS") $MOUNT
      sudo chmod 777 $MOUNT"
  fi
  # The machines' own Python may be too old.
  on all "set -e
    $mount
    mkdir -p nsode_jax
    tar -xzf nsode_jax.tar.gz -C nsode_jax
    cd nsode_jax
    python3 -m pip install --quiet --user uv
    python3 -m uv venv --quiet --allow-existing --python 3.11 .venv
    python3 -m uv pip install --quiet --python .venv/bin/python -e '.[tpu,train]'"
}

train() {
  local command=(.venv/bin/python -u -m nsode_jax.train --config "$CONFIG" --workdir "$WORKDIR")
  [ "$DISTRIBUTED" = 0 ] || command+=(--distributed)
  on all "cd nsode_jax && { nohup$(printf ' %q' "${command[@]}")\
 $FLAGS >../nsode_jax.log 2>&1 </dev/null &
    echo \$! >../nsode_jax.pid; }"
}

log() { on 0 "tail -n 50 -F nsode_jax.log"; }
stop() { on all "kill -TERM \$(cat nsode_jax.pid)"; }
delete() { tpu_vm delete "$TPU" --quiet; }

for step in "$@"; do
  "$step"
done
