"""A rank that has other data or another version than the first, or lacks the data, as the command line meets it.

python -m tests.training.unlike_ranks FOLDER WRONG …     # several mistakes, one after another
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import numpy as np

from cadr.cli.main import main
from cadr.utils import ranks

WRONG = ("data", "version", "configuration", "batch", "minutes", "ensemble", "missing")


def begin(folder: Path, wrong: str) -> int:
    second = ranks.number() == 1
    generator = np.random.default_rng(1 if second and wrong == "data" else 0)
    labels = np.where(np.arange(90) < 24, np.arange(90) % 3, -1)
    path = folder / f"{wrong}-{ranks.number()}.npz"
    np.savez(path, x=generator.normal(size=(90, 4)).astype(np.float32), y=labels)
    data = "nowhere.npz" if second and wrong == "missing" else str(path)
    steps = (
        ["--minutes", "1"] if wrong == "minutes" else ["--steps", "5" if second and wrong == "configuration" else "4"]
    )
    network = [
        "--algorithm",
        "cadr",
        "--target-prior",
        "1",
        "1",
        "1",
        *steps,
        "--batch",
        "1" if wrong == "batch" else "8",
    ]
    flags = ["--algorithm", "ensemble"] if wrong == "ensemble" else network
    with mock.patch("cadr.__version__", "0.0.1" if second and wrong == "version" else "0.0.2"):
        return main(["train", data, "--out", str(folder / "run"), "--device", "cpu", *flags])


if __name__ == "__main__":
    sys.exit({begin(Path(sys.argv[1]), wrong) for wrong in sys.argv[2:]} != {2})
