"""Half-labelled files under the names that the documentation gives to a reader's own, small enough for seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

_ROWS, _SIDE = 90, 6
_LABELS = (24, 9, 4)  # of each species: people label what they like
_NAMES = ("robin", "wren", "owl")


def lay_out(folder: Path) -> None:
    """photos/ with labels.csv, table.csv with a column species, and embeddings.npy with names.csv."""
    random = np.random.default_rng(0)
    species = np.arange(_ROWS) % len(_NAMES)
    left = list(_LABELS)
    labels = []
    for c in species:
        labels.append(_NAMES[c] if left[c] else "")
        left[c] = max(left[c] - 1, 0)
    x = random.normal(size=(_ROWS, 4)) + 4 * np.eye(3, 4)[species]
    np.save(folder / "embeddings.npy", x.astype(np.float32))
    _write(folder / "names.csv", ["label", *labels])
    rows = [",".join([*(f"{value:.3f}" for value in row), label]) for row, label in zip(x, labels, strict=True)]
    _write(folder / "table.csv", ["a,b,c,d,species", *rows])
    (folder / "photos").mkdir()
    for i, c in enumerate(species):
        pixels = random.integers(0, 80, (_SIDE, _SIDE, 3)) + 80 * np.eye(3, dtype=np.int64)[c]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / f"{i:03}.png")
    _write(folder / "labels.csv", ["file,label", *(f"{i:03}.png,{label}" for i, label in enumerate(labels) if label)])


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
