#!/usr/bin/env bash
# Trains on the GPUs of several nodes under SLURM, one task for each GPU.
#
#   WORKDIR=/shared/run NODES=4 GPUS=8 bash launch/slurm.sh [flags of nsode_jax.train]
#
# submits itself; the same by hand is
#
#   WORKDIR=/shared/run sbatch --nodes=4 --gpus-per-node=8 --ntasks-per-node=8 launch/slurm.sh
#
# from the repository's root. Within an allocation (salloc) it runs at once. Two minutes
# before the time limit a checkpoint is saved and the job is queued again; after a
# preemption SLURM queues it again; each time it goes on from the newest checkpoint.
# `scancel` saves, and ends it. A task that dies ends all, and the job fails.
#
# Settings, all from the environment:
#   WORKDIR     a folder that all nodes see                     (required)
#   CONFIG      config file                                     (configs/base.py)
#   NODES       how many                                        (1)
#   GPUS        GPUs, and so tasks, of each node                (8)
#   CPUS        cores of each task; all but one draw examples   (8)
#   TIME        limit, as sbatch takes it                       (24:00:00)
#   PARTITION, ACCOUNT                                          (SLURM's defaults)
#   PYTHON      the interpreter                                 (.venv/bin/python, or python3)
#   DRY_RUN=1   only print the command
#
# Run by us: with a stand-in for srun that starts the tasks on one machine
# (tests/distributed_test.py). Not run under SLURM itself.
#
# Options of a job that is submitted by hand. USR1 comes before the time limit only, so
# that a job that was cancelled is not queued again.
#SBATCH --job-name=nsode_jax
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
set -euo pipefail

fail() {
  echo "slurm.sh: error: $*" >&2
  exit 2
}
check_count() { # NAME VALUE
  [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || fail "$1 must be a number from 1 to 99999, not '$2'"
}
print_or_run() {
  if [ "${DRY_RUN:-0}" = 1 ]; then
    printf '%q ' "$@"
    echo
  else
    "$@"
  fi
}

# SLURM runs a copy of this file, elsewhere.
if [ -n "${SLURM_JOB_ID:-}" ]; then
  cd "${SLURM_SUBMIT_DIR:-$PWD}"
else
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
fi
[ -d nsode_jax ] || fail "submit the job from the repository's root, not from $PWD"
export CONFIG=${CONFIG:-configs/base.py}
export PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
[ -n "${WORKDIR:-}" ] || fail "set WORKDIR, a folder that all nodes see"
[ -f "${CONFIG%%:*}" ] || fail "there is no config file $CONFIG"
export WORKDIR

if [ -z "${SLURM_JOB_ID:-}" ]; then
  NODES=${NODES:-1} GPUS=${GPUS:-8} CPUS=${CPUS:-8}
  check_count NODES "$NODES"
  check_count GPUS "$GPUS"
  check_count CPUS "$CPUS"
  [ "${DRY_RUN:-0}" = 1 ] || command -v sbatch >/dev/null || fail "there is no sbatch here"
  options=(--nodes="$NODES" --gpus-per-node="$GPUS" --ntasks-per-node="$GPUS"
    --cpus-per-task="$CPUS" --time="${TIME:-24:00:00}")
  [ -z "${PARTITION:-}" ] || options+=(--partition="$PARTITION")
  [ -z "${ACCOUNT:-}" ] || options+=(--account="$ACCOUNT")
  print_or_run sbatch "${options[@]}" launch/slurm.sh "$@"
  exit
fi

# JAX finds the other tasks by SLURM's variables, and gives each the GPU of its number.
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
cpus=${SLURM_CPUS_PER_TASK:-1}
command=(srun --kill-on-bad-exit=1 --label --cpus-per-task="$cpus"
  "$PYTHON" -m nsode_jax.train --config "$CONFIG" --workdir "$WORKDIR" --distributed
  --config.training.data_workers="$((cpus > 1 ? cpus - 1 : 1))" "$@")
if [ "${DRY_RUN:-0}" = 1 ]; then
  print_or_run "${command[@]}"
  exit
fi

again=0
trap 'again=1; kill -TERM "$step"' USR1 # srun hands SIGTERM on to all tasks, which save.
trap 'kill -TERM "$step"' TERM INT
"${command[@]}" &
step=$!
code=0
wait "$step" || code=$?
while kill -0 "$step" 2>/dev/null; do # A signal has ended the wait, not the step.
  code=0
  wait "$step" || code=$?
done
if [ "$again" = 1 ] && [ "$code" = 0 ]; then
  echo "slurm.sh: the time is up; queueing job $SLURM_JOB_ID again" >&2
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
