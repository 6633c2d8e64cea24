#!/usr/bin/env bash
# Trains with several processes on this machine, as a cluster would: a rehearsal, on CPUs.
#
#   WORKDIR=runs/two bash launch/local.sh [flags of nsode_jax.train, --config.training.steps=100]
#
# One process alone drives all devices of a machine, so this is no way to be faster. Each
# process writes to WORKDIR/logs/process-N.log, the first one also to the terminal. SIGTERM
# and Ctrl-C save a checkpoint and end all. When a process dies the rest is ended within a
# minute, and the message names it; the same command goes on from the newest checkpoint.
# The exit code is 0, that of the first process that failed, or 2 if a setting is wrong.
#
# Settings, all from the environment:
#   WORKDIR     for checkpoints, metrics, weights and logs      (required)
#   CONFIG      config file                                     (configs/small.py)
#   PROCESSES   how many                                        (2)
#   DEVICES     simulated CPU devices of each                   (1)
#   PORT        where process 0 waits for the others            (a free one)
#   PYTHON      the interpreter                                 (.venv/bin/python, or python3)
#   DRY_RUN=1   only print the commands
#
# Run by us: tests/launch_test.py and tests/distributed_test.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "local.sh: error: $*" >&2
  exit 2
}
check_count() { # NAME VALUE MOST
  [[ $2 =~ ^[1-9][0-9]{0,4}$ && $2 -le $3 ]] || fail "$1 must be a number from 1 to $3, not '$2'"
}

CONFIG=${CONFIG:-configs/small.py}
PROCESSES=${PROCESSES:-2}
DEVICES=${DEVICES:-1}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
[ -n "${WORKDIR:-}" ] || fail "set WORKDIR, a folder for checkpoints and logs"
[ -f "${CONFIG%%:*}" ] || fail "there is no config file $CONFIG"
check_count PROCESSES "$PROCESSES" 1024
check_count DEVICES "$DEVICES" 1024
[ "$PROCESSES" -gt 1 ] || fail "one process needs no launcher: $PYTHON -m nsode_jax.train"
command -v "$PYTHON" >/dev/null || fail "there is no $PYTHON"

# Prints the port if it is free; of 0 finds a free one.
free_port='
import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as server:
    print(server.getsockname()[1])'
if [ -n "${PORT:-}" ]; then
  check_count PORT "$PORT" 65535
  "$PYTHON" -c "$free_port" "$PORT" >/dev/null 2>&1 || fail "port $PORT is in use"
else
  PORT=$("$PYTHON" -c "$free_port" 0)
fi

# Several devices on few cores need more threads than cores, or they wait for ever.
environment=(JAX_PLATFORMS=cpu NPROC=16 PYTHONUNBUFFERED=1
  XLA_FLAGS="${XLA_FLAGS:+$XLA_FLAGS }--xla_force_host_platform_device_count=$DEVICES")
# The processes talk to one another, which must not go through a proxy.
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
command=("$PYTHON" -m nsode_jax.train --config "$CONFIG" --workdir "$WORKDIR" --distributed
  "--coordinator=localhost:$PORT" "--num_processes=$PROCESSES")
log() { echo "$WORKDIR/logs/process-$1.log"; }

if [ "${DRY_RUN:-0}" = 1 ]; then
  for ((i = 0; i < PROCESSES; i++)); do
    printf '%q ' env "${environment[@]}" "${command[@]}" "--process_id=$i" "$@"
    printf '>> %q 2>&1 &\n' "$(log "$i")"
  done
  exit
fi

mkdir -p "$WORKDIR/logs"
pids=()
for ((i = 0; i < PROCESSES; i++)); do
  if [ "$i" = 0 ]; then
    env "${environment[@]}" "${command[@]}" --process_id=0 "$@" > >(tee -i -a "$(log 0)") 2>&1 &
  else
    env "${environment[@]}" "${command[@]}" "--process_id=$i" "$@" >>"$(log "$i")" 2>&1 &
  fi
  pids+=($!)
done

send() {
  for pid in "${pids[@]}"; do
    kill "-$1" "$pid" 2>/dev/null || true
  done
}
trap 'send TERM' TERM INT # They save, and end.
trap 'send KILL' EXIT

left=("${!pids[@]}") code=0 deadline=0
while [ "${#left[@]}" -gt 0 ]; do
  sleep 0.2 || true
  running=()
  for i in "${left[@]}"; do
    if kill -0 "${pids[i]}" 2>/dev/null; then
      running+=("$i")
      continue
    fi
    ended=0
    wait "${pids[i]}" 2>/dev/null || ended=$? # Without what bash has to say.
    if [ "$ended" != 0 ] && [ "$code" = 0 ]; then
      code=$ended deadline=$((SECONDS + 45))
      how="ended with exit code $ended"
      [ "$ended" -le 128 ] || how="was ended by SIG$(kill -l $((ended - 128)))"
      echo "local.sh: process $i of $PROCESSES $how (see $(log "$i")); the others end, too" >&2
    fi
  done
  left=(${running[@]+"${running[@]}"})
  if [ "$code" != 0 ] && [ "$SECONDS" -ge "$deadline" ]; then
    send KILL # They wait for what does not come.
  fi
done
exit "$code"
