"""The unlabelled examples whose labels are worth most to the model, as a table to fill in.

These are other examples than the page's, whose labels make an estimate more certain: to make the *model* better, labels
of those it cannot decide are worth a little more, and far more than any (benchmarks/more_labels.md).
"""

from __future__ import annotations

import csv
import dataclasses
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cadr.data.sources.csv_file import CsvError, read_csv
from cadr.errors import ConfigError
from cadr.report.model_outputs import Look
from cadr.report.query import worth_labelling
from cadr.utils.files import atomic_write

MOST = 100
_COLUMNS = ["label", "guess", "probability", "guess_2", "probability_2"]  # behind what the example is called
_NAMED = (["file"], ["id"], ["id", "row"], ["row"])


def together(looks: Sequence[Look]) -> Look:
    """The mean of several runs' predictions of the same rows: an example that they disagree on is one to ask for."""
    return dataclasses.replace(looks[0], on_unlabelled=np.mean([look.on_unlabelled for look in looks], axis=0))


def check_free(path: Path, page: Path) -> None:
    """Labels that somebody filled in must not make way, nor anything else but such a table that is still blank."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file to write what to label to")
    if os.path.realpath(path) == os.path.realpath(page):
        raise ConfigError(f"{path} is to be the page; write what to label to another file")
    if path.is_file() and path.stat().st_size and not _is_blank(path):
        raise ConfigError(
            f"{path} is there already, with more than blank labels; name another file, so that nothing is lost"
        )


def _is_blank(path: Path) -> bool:
    try:
        header, rows = read_csv(path)
        label_at = len(header) - len(_COLUMNS)
        ours = header[:label_at] in _NAMED and header[label_at:] == _COLUMNS
        return ours and not any(row[label_at].strip() for _, row in rows)
    except CsvError:
        return False


def write_to_label(path: Path, look: Look) -> list[str]:
    """Write at most a hundred, with a blank for the label, and what it may be. What to know comes back in words."""
    pool, names = look.pool, look.pool.identifiers
    asked = worth_labelling(look.on_unlabelled, pool, look.unlabelled, MOST)
    first = ["row" if names is None else "file" if pool.in_files else "id"]
    shared = _shared(names or (), [int(row) for row in look.unlabelled[asked]])
    if shared is not None:
        first.append("row")
    with atomic_write(path) as new, new.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = csv.writer(file)
        table.writerow([*first, *_COLUMNS])
        for i in asked:
            row, probabilities = int(look.unlabelled[i]), look.on_unlabelled[i]
            best = np.argsort(-probabilities, kind="stable")[:2]
            guesses = [cell for c in best for cell in (pool.class_names[c], f"{probabilities[c]:.4f}")]
            called = [row if names is None else names[row] or f"row {row}"]
            table.writerow([*called, *([row] if shared is not None else []), "", *guesses])
    if shared is None:
        return []
    return [f"Several rows are called {shared!r}: in {path} the column `row`, counted from 0, says which row is meant."]


def _shared(names: Sequence[str], rows: Sequence[int]) -> str | None:
    """What one of these rows and some other are called; rows without a name go by their number."""
    often = Counter(names)
    return next((names[row] for row in rows if names and names[row] and often[names[row]] > 1), None)
