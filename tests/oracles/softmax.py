"""Stable softmax in float64, the only numerical care the other oracles need."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]


def logsumexp(values: Array, axis: int) -> Array:
    largest = values.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(values - largest).sum(axis=axis, keepdims=True)) + largest
    return np.asarray(np.squeeze(summed, axis=axis), dtype=np.float64)


def log_softmax(logits: Array) -> Array:
    """log P(y | x) for every row: the maximum is subtracted first, so ±1e4 neither overflows nor loses the log."""
    return logits - logsumexp(logits, axis=1)[:, None]


def softmax(logits: Array) -> Array:
    return np.asarray(np.exp(log_softmax(logits)), dtype=np.float64)


def cross_entropy(logits: Array, labels: Indices) -> float:
    """−mean log P(y_i | x_i)."""
    return float(-log_softmax(logits)[np.arange(len(labels)), labels].mean())
