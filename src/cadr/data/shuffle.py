"""Random orders that are the same on every platform and with every NumPy version.

NumPy may change how its generators shuffle; the bits here are SplitMix64's (Steele, Lea and Flood, 2014), written out,
so that a split made today is the split made in ten years.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cadr.errors import ProtocolError

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def bits(seed: int, stream: int, n: int) -> NDArray[np.uint64]:
    """n random 64-bit words; another `stream` of the same seed is independent of this one."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 63:
        raise ProtocolError(f"a seed is a whole number from 0 to 2^63 − 1, got {seed!r}")
    start = _mix(np.array([int(seed) ^ ((stream + 1) * 0xD1342543DE82EF95 & _MASK)], dtype=np.uint64))
    return _mix(start + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GOLDEN))


def uniform(seed: int, stream: int, n: int) -> NDArray[np.float64]:
    """n numbers in [0, 1) with 53 random bits each."""
    return np.asarray((bits(seed, stream, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def order(seed: int, stream: int, n: int) -> NDArray[np.int64]:
    """A random order of 0 … n − 1."""
    return np.argsort(bits(seed, stream, n), kind="stable").astype(np.int64)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
