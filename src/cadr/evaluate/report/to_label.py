"""The unlabelled examples that the model is least sure of, as a table to fill in.

These are other examples than the page's, whose labels make an estimate more certain: to make the *model* better, labels
of those it cannot decide are worth more (benchmarks/more_labels.md).
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cadr.data.whole import whole
from cadr.evaluate.report.look import Look

MOST = 100


def least_sure(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of (n, C), those first in which the two most likely classes are nearest to each other."""
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    return np.argsort(first - second, kind="stable")


def write_to_label(path: Path, look: Look) -> None:
    """Write at most a hundred, with a blank for the label, and what it may be."""
    pool, names = look.pool, look.pool.identifiers
    first = "row" if names is None else "file" if pool.examples.ndim == 4 else "id"
    with whole(path) as new, new.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = csv.writer(file)
        table.writerow([first, "label", "guess", "probability", "guess_2", "probability_2"])
        for i in least_sure(look.on_unlabelled)[:MOST]:
            row, probabilities = int(look.unlabelled[i]), look.on_unlabelled[i]
            best = np.argsort(-probabilities, kind="stable")[:2]
            guesses = [cell for c in best for cell in (pool.class_names[c], f"{probabilities[c]:.4f}")]
            table.writerow([row if names is None else names[row], "", *guesses])
