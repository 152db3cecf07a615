"""Labels kept aside where there is no test set: to judge a run on, and to calibrate its probabilities with.

They come from every class in proportion, but never the last label of a class. Their rows are left out of the unlabelled
stream too: a model that was taught to agree with itself on them would be judged too kindly.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, Pool
from cadr.data.shuffle import VALIDATION, first
from cadr.errors import DataError
from cadr.utils.untrusted import parse_json, read_text

FILE = "validation.json"
Indices = NDArray[np.int64]
NONE: Indices = np.empty(0, dtype=np.int64)


def choose(pool: Pool, share: float, seed: int) -> Indices:
    """Rows to hold out: `share` of the labels of each class, rounded, and at least one label stays."""
    counts = np.minimum(np.rint(share * pool.counts).astype(np.int64), np.maximum(pool.counts - 1, 0))
    return first(pool.labels, counts, seed, VALIDATION)


def hold_out(pool: Pool, rows: Indices) -> Pool:
    """The pool with these rows as its test part, and in neither stream."""
    if len(rows) == 0:
        return pool
    if rows[-1] >= len(pool.labels) or (pool.labels[rows] == MISSING).any():
        raise DataError(f"the labels held out for validation are no longer in {pool.name}; start a new run")
    labels = pool.labels.copy()
    labels[rows] = MISSING
    stream = np.arange(len(labels)) if pool.stream is None else pool.stream
    return dataclasses.replace(
        pool,
        labels=labels,
        hidden_labels=pool.labels if pool.hidden_labels is None else pool.hidden_labels,
        stream=np.setdiff1d(stream, rows),
        test_examples=pool.examples[rows],
        test_labels=pool.labels[rows],
    )


def to_json(rows: Indices, pool: Pool) -> str:
    """Row numbers, and hashes of what the rows hold: they are known again when others have come between them."""
    return json.dumps({"rows": rows.tolist(), "hashes": _hashes(pool, rows)}) + "\n"


def found_again(path: Path, pool: Pool) -> Indices:
    """The labelled rows of a pool that hold what was held out in a run, whatever their numbers were there."""
    try:
        known = set(parse_json(path.read_text(encoding="utf-8")).get("hashes", ()))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{path} does not say which rows are held out ({error})") from None
    labelled = np.flatnonzero(pool.labels != MISSING)
    return labelled[[each in known for each in _hashes(pool, labelled)]]


def _hashes(pool: Pool, rows: Indices) -> list[str]:
    return [hashlib.sha256(np.ascontiguousarray(pool.examples[row]).data).hexdigest()[:32] for row in rows]


def read(path: Path) -> Indices:
    """The rows that a run has held out."""
    try:
        rows = np.array(parse_json(read_text(path))["rows"], dtype=np.int64)
        if rows.ndim != 1 or (rows < 0).any() or (np.diff(rows) <= 0).any():
            raise ValueError("rows should be rising row numbers")
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(f"{path} does not say which rows are held out ({error}); start a new run") from None
    return rows
