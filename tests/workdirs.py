"""What a training run has written."""

import json
from pathlib import Path


def rows(workdir: Path, kind: str = "train") -> dict[int, dict]:
    """The lines of metrics.jsonl of one kind, by their step; none before the first."""
    file = workdir / "metrics.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["step"]: row for row in found if row["kind"] == kind}


def losses(workdir: Path, kind: str = "train") -> dict[int, float]:
    """The loss by step."""
    return {step: row["loss"] for step, row in rows(workdir, kind).items()}
