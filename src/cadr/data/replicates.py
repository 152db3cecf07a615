"""Rows that are there several times as one row with a weight: weighted and repeated rows are the same data then.

Whatever is drawn or dealt out row by row, as folds are, would tell them apart otherwise.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cadr.data.pool import Pool


def merged(pool: Pool) -> Pool:
    """The pool with every row once, in an order of its own; as it is where nothing is weighted or repeated.

    Rows are the same if their features or pixels and their label are. Not for rows that are called something.
    """
    n = len(pool.labels)
    numbers = np.ascontiguousarray(pool.examples).reshape(n, -1)
    if numbers.dtype == np.float32:
        numbers = numbers + np.float32(0.0)  # of −0 and 0 the bytes differ
    as_bytes = np.hstack([numbers.view(np.uint8), np.ascontiguousarray(pool.labels).reshape(n, 1).view(np.uint8)])
    keys = np.ascontiguousarray(as_bytes).view(f"V{as_bytes.shape[1]}").ravel()
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    weights = np.bincount(where, pool.weights, minlength=len(first)).astype(np.float64)
    same = None if (weights == 1.0).all() else weights
    if len(first) == n and same is None:
        return dataclasses.replace(pool, weights=None)
    return dataclasses.replace(pool, examples=pool.examples[first], labels=pool.labels[first], weights=same)
