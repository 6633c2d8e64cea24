"""Results as lines of JSON in a file that is gone on with where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nsode_jax.system.files import write_atomically

Line = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)


def finish(
    path: Path,
    tasks: Mapping[Key, Callable[[], Line]],
    key: Callable[[Line], Key],
    tell: Callable[[Line], str],
) -> list[Line]:
    """Does the tasks whose lines the file lacks, and adds each line as it is there.

    Args:
      path: of the file; made if it is not there. A last line that was cut off is removed.
      tasks: by key, what gives a line.
      key: of a line. Lines of other tasks are left alone.
      tell: what to print of a new line.

    Returns:
      All lines of the file.
    """
    text = path.read_text("utf-8") if path.exists() else ""
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        write_atomically(path, complete.encode())
    lines = [json.loads(line) for line in complete.splitlines()]
    done = set(map(key, lines))
    for wanted, task in tasks.items():
        if wanted not in done:
            lines.append(task())
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            print(tell(lines[-1]), flush=True)
    return lines
