#!/usr/bin/env bash
# Trains on, day after day, with what this machine leaves over; one line says how far it is.
#
#   bash launch/train_in_background.sh               # starts or continues the trunk
#   bash launch/train_in_background.sh status        # only says how far it is
#   bash launch/train_in_background.sh stop          # saves and ends it
#   bash launch/train_in_background.sh decay 2000    # stops it; weights to ship in 2000 steps
#   bash launch/train_in_background.sh keep FOLDER   # its newest weights, for another machine
#
# The trunk has a constant learning rate and no end: it is as good a start after a year as
# after a day. Weights to ship come from a branch off its newest checkpoint, over which
# the rate falls to 0: `decay` starts or continues that, in RUN/decay, and leaves
# RUN/decay/weights. Move that folder away to branch off again. `keep` writes the weights of
# the trunk's newest checkpoint in full precision, also while it runs: INIT_FROM for another.
#
# Both run at the lowest priority (SCHED_IDLE where the system allows it), outlive this
# shell, and may be killed at any moment, -9 included: the same command goes on from the
# newest checkpoint, bit-identically. Without one the trunk starts from INIT_FROM. A second
# one in the same folder is refused. After a change of the model or of the data a trunk
# cannot go on: move RUN away, and name its weights as INIT_FROM. For Linux.
#
# Settings, all from the environment:
#   RUN          folder of the trunk: checkpoints, metrics, weights, train.log  (runs/trunk)
#   CONFIG       config file                                           (configs/small.py)
#   INIT_FROM    weights that a fresh trunk starts from: a folder or a name
#                                                   (weights/small-trunk, of this repository)
#   SAVE_EVERY   steps between two checkpoints                                      (200)
#   NICE         its niceness; 19, the lowest, is with SCHED_IDLE where there is that (19)
#   OVERRIDES    more flags of nsode_jax.train                                     (none)
#   PYTHON       the interpreter                         (.venv/bin/python, or python3)
#   DRY_RUN=1    only print the commands
#
# Run by us: tests/train_in_background_test.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "train_in_background.sh: error: $*" >&2
  exit 2
}

is_dry() { [ "${DRY_RUN:-0}" = 1 ]; }
print_or_run() {
  if is_dry; then
    printf '%q ' "$@"
    echo
  else
    "$@"
  fi
}

RUN=${RUN:-runs/trunk}
CONFIG=${CONFIG:-configs/small.py}
SAVE_EVERY=${SAVE_EVERY:-200}
NICE=${NICE:-19}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
INIT_FROM=${INIT_FROM:-weights/small-trunk}
read -r -a overrides <<<"${OVERRIDES:-}"
command -v "$PYTHON" >/dev/null || fail "there is no $PYTHON"
for tool in flock setsid; do
  command -v "$tool" >/dev/null || fail "this needs $tool, of util-linux"
done
# `flock` opens the file anew, so it asks as a second run would.
runs() { [ -f "$1/lock" ] && ! flock -n "$1/lock" true; }

say() { # NAME FOLDER: one line on how far it is.
  local state="not running"
  ! runs "$2" || state="runs as process $(cat "$2/pid")"
  "$PYTHON" - "$1" "$2" "$state" <<'PYTHON_END'
import json, pathlib, sys

name, folder, state = sys.argv[1:]
last = {}
try:
    for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines():
        try:
            row = json.loads(line)
            last[row["kind"]] = row
        except (ValueError, KeyError):
            pass  # One that is being written.
except OSError:
    pass
parts = [state]
if train := last.get("train"):
    parts += [f"step {train['step']:,}", f"{train['samples_seen']:,.0f} samples seen"]
    if train.get("samples_per_second"):
        parts.append(f"{train['samples_per_second']:.0f} samples/s")
else:
    parts.append("no steps yet")
if state == "not running":
    try:
        lines = (pathlib.Path(folder) / "train.log").read_text().splitlines()
        parts += [line for line in lines[-1:] if line.startswith("nsode_jax.train: ")]
    except OSError:
        pass
if validation := last.get("validation"):
    parts.append(f"validation loss {validation['loss']:.4f} at step {validation['step']:,}")
print(f"{name} in {folder}: {', '.join(parts)}")
PYTHON_END
}

start() { # NAME FOLDER FLAGS...: starts it unless it runs, and says how far it is.
  local name=$1 folder=$2 priority=(nice -n "$NICE")
  shift 2
  [ "$NICE" != 19 ] || ! chrt -i 0 true 2>/dev/null || priority+=(chrt -i 0)
  local command=("${priority[@]}" "$PYTHON" -m nsode_jax.train --config "$CONFIG"
    --workdir "$folder" "--config.training.save_every=$SAVE_EVERY" "$@" "${overrides[@]}")
  if is_dry; then
    print_or_run "${command[@]}"
    return
  fi
  mkdir -p "$folder"
  # The process inherits the lock, so it is free when, and only when, that has ended.
  exec 9>>"$folder/lock"
  if flock -n 9; then
    export PYTHONUNBUFFERED=1
    export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$(realpath "$RUN")/compiled}
    # Where processes are scheduled by session, only the session's own niceness counts.
    # shellcheck disable=SC2016
    setsid nohup bash -c 'echo $$ >"$0"; echo "$1" 2>/dev/null >/proc/self/autogroup || true
      shift; exec "$@"' "$folder/pid" "$NICE" "${command[@]}" \
      </dev/null >>"$folder/train.log" 2>&1 &
    sleep 1
  fi
  exec 9>&-
  say "$name" "$folder"
}

stop() { # FOLDER: waits until it has saved.
  runs "$1" || return 0
  local process
  process=$(cat "$1/pid")
  if is_dry; then
    print_or_run kill -TERM "$process"
    return
  fi
  # At the lowest priority it might not get to the end of its step.
  { chrt -a -o -p 0 "$process" && renice -n 0 -g "$process" &&
    echo 0 >"/proc/$process/autogroup"; } >/dev/null 2>&1 || true
  kill -TERM "$process" 2>/dev/null || true
  while runs "$1"; do sleep 0.5; done
}

newest_checkpoint() { # FOLDER: its number; nothing if there is none.
  # A finished one has its number as its name.
  find "$1/checkpoints" -mindepth 1 -maxdepth 1 -name '[0-9]*' ! -name '*[!0-9]*' \
    -printf '%f\n' 2>/dev/null | sort -n | tail -1 || true
}

keep_flags() { # BRANCH FLAGS...: what it goes on with when it is killed.
  mkdir -p "$1"
  printf '%s\n' "${@:2}" >"$1/flags.new"
  mv "$1/flags.new" "$1/flags"
}

decay() { # STEPS
  local branch=$RUN/decay steps=${1:-} newest flags
  # A branch killed before it has saved begins anew, and the trunk may have gone on since.
  if runs "$branch" || [ -n "$(newest_checkpoint "$branch")" ]; then
    stop "$RUN"
    mapfile -t flags <"$branch/flags"
  else
    [[ $steps =~ ^[1-9][0-9]{0,8}$ ]] || fail "decay needs a number of steps, not '$steps'"
    stop "$RUN"
    newest=$(newest_checkpoint "$RUN")
    [ -n "$newest" ] || fail "there is no checkpoint in $RUN to branch off from"
    flags=("--config.training.branch_from=$RUN" "--config.training.decay_steps=$steps"
      "--config.training.steps=$((newest + steps))")
    is_dry || keep_flags "$branch" "${flags[@]}"
  fi
  start decay "$branch" "${flags[@]}"
}

case "${1:-start}" in
start)
  start trunk "$RUN" "--config.training.init_from=$INIT_FROM" --config.training.decay_steps=0 \
    --config.training.steps=1000000000
  ;;
status)
  say trunk "$RUN"
  [ ! -d "$RUN/decay" ] || say decay "$RUN/decay"
  ;;
stop)
  stop "$RUN"
  stop "$RUN/decay"
  is_dry || say trunk "$RUN"
  ;;
decay) decay "${2:-}" ;;
keep)
  [ -n "${2:-}" ] || fail "keep needs a folder"
  print_or_run env JAX_PLATFORMS=cpu "$PYTHON" -m nsode_jax.training.keep "$RUN" "$2"
  ;;
*) fail "unknown argument $1; see the top of $0" ;;
esac
