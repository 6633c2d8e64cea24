"""Exported weights in pieces that fit through a narrow door, and joined again.

    python launch/weight_pieces.py split RUN/weights OUT
    python launch/weight_pieces.py join OUT nsode_jax/weights/base

`split` writes `weights.npz.0`, `weights.npz.1`, ... and `pieces.json`, which holds
`model.json` and the SHA-256 of every piece. It needs nothing but Python's standard
library, and replaces earlier pieces only once the new ones are complete.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

PIECE_BYTES = 15 * 2**20
MANIFEST = "pieces.json"


class PiecesError(ValueError):
    """Weights or pieces that are missing, damaged or do not belong together."""


def split(weights: Path, out: Path, piece_bytes: int = PIECE_BYTES) -> list[Path]:
    """Writes the weights of a folder in pieces of equal size.

    Args:
      weights: a folder with `weights.npz` and `model.json`.
      out: where the pieces go; earlier ones are replaced.
      piece_bytes: most bytes of a piece.

    Returns:
      The pieces.

    Raises:
      PiecesError: if the weights are not complete, as while they are being written.
    """
    try:
        model = json.loads((weights / "model.json").read_text())
        data = (weights / "weights.npz").read_bytes()
    except (OSError, json.JSONDecodeError) as error:
        raise PiecesError(f"no complete weights in {weights}: {error}") from error
    if _sha256(data) != model["sha256"]:
        raise PiecesError(f"{weights}/weights.npz does not match the SHA-256 in its model.json")

    count = max(-(-len(data) // piece_bytes), 1)
    size = -(-len(data) // count)
    parts = {f"weights.npz.{i}": data[i * size : (i + 1) * size] for i in range(count)}
    manifest = {
        "pieces": [
            {"name": name, "bytes": len(part), "sha256": _sha256(part)}
            for name, part in parts.items()
        ],
        "model": model,
    }
    out.mkdir(parents=True, exist_ok=True)
    # Written elsewhere and then moved: `out` is copied as it stands when time is up.
    with tempfile.TemporaryDirectory(dir=weights.parent) as folder:
        for name, part in parts.items():
            (Path(folder) / name).write_bytes(part)
        (Path(folder) / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        for old in out.glob("weights.npz.*"):
            if old.name not in parts:
                old.unlink()
        for name in (*parts, MANIFEST):
            shutil.move(Path(folder) / name, out / name)
    return [out / name for name in parts]


def join(pieces: Path, weights: Path) -> None:
    """Makes a weights folder of pieces, after all of them have been verified.

    The activations' type becomes float32 again: bfloat16 was the choice of the GPU
    that trained, and is slow on most CPUs.

    Args:
      pieces: a folder that `split` wrote.
      weights: the folder to write.

    Raises:
      PiecesError: naming the piece that is missing or damaged.
    """
    try:
        manifest = json.loads((pieces / MANIFEST).read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise PiecesError(f"no pieces in {pieces}: {error}") from error
    parts = []
    for piece in manifest["pieces"]:
        path = pieces / piece["name"]
        if not path.is_file():
            raise PiecesError(f"{path} is missing")
        part = path.read_bytes()
        if len(part) != piece["bytes"] or _sha256(part) != piece["sha256"]:
            raise PiecesError(f"{path} is damaged: its size or its SHA-256 does not match")
        parts.append(part)
    model, data = manifest["model"], b"".join(parts)
    if _sha256(data) != model["sha256"]:
        raise PiecesError(f"the pieces in {pieces} do not make the weights of {MANIFEST}")
    model["model"]["dtype"] = "float32"
    weights.mkdir(parents=True, exist_ok=True)
    (weights / "weights.npz").write_bytes(data)
    (weights / "model.json").write_text(json.dumps(model, indent=2) + "\n")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main() -> int:
    """Runs the command line. Returns 0, or 2 after one line that says what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("split", "join"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--bytes", type=int, default=PIECE_BYTES, help="most bytes of a piece")
    arguments = parser.parse_args()
    try:
        if arguments.action == "split":
            pieces = split(arguments.source, arguments.target, arguments.bytes)
            print(f"{len(pieces)} pieces in {arguments.target}")
        else:
            join(arguments.source, arguments.target)
            print(f"joined and verified: {arguments.target}")
    except (PiecesError, OSError) as error:
        print(f"weight_pieces: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
