"""Long-tailed class profiles N·γ^(−i/k), rounded exactly.

In floating point 50·50^(−1) may come out as 1.0000000000000002, whose ceiling is 2. Whether m ≥ N·γ^(−i/k) is decided
in whole numbers instead (m^k·γ^i ≥ N^k), so that every platform agrees.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


def ceilings(n: int, gamma: float, num_classes: int) -> NDArray[np.int64]:
    """⌈N·γ^(−i/(C−1))⌉ for each class; with γ < 1 it is the last class that has N."""
    k = max(num_classes - 1, 1)
    if gamma < 1:
        return np.array([ceiling(n, gamma, i - k, k) for i in range(num_classes)], dtype=np.int64)
    return np.array([ceiling(n, gamma, i, k) for i in range(num_classes)], dtype=np.int64)


def floors(n: int, gamma: float, num_classes: int) -> NDArray[np.int64]:
    """⌊N·γ^(−i/(C−1))⌋ for each class."""
    k = max(num_classes - 1, 1)
    return np.array([floor(n, gamma, i, k) for i in range(num_classes)], dtype=np.int64)


def ceiling(n: int, gamma: float, i: int, k: int) -> int:
    """⌈N·γ^(−i/k)⌉."""
    m: int = max(0, round(n * gamma ** (-i / k)) - 1)
    while _compare(m, n, gamma, i, k) < 0:
        m += 1
    return m


def floor(n: int, gamma: float, i: int, k: int) -> int:
    """⌊N·γ^(−i/k)⌋."""
    m = ceiling(n, gamma, i, k)
    return m if _compare(m, n, gamma, i, k) == 0 else m - 1


def _compare(m: int, n: int, gamma: float, i: int, k: int) -> int:
    """The sign of m − N·γ^(−i/k), exactly; `i` may be negative."""
    typed = Fraction(repr(float(gamma)))  # 0.02 is a fiftieth, not the binary number next to it
    up, down = (typed.numerator, typed.denominator) if i >= 0 else (typed.denominator, typed.numerator)
    left: int = m**k * up ** abs(i)
    right: int = n**k * down ** abs(i)
    return (left > right) - (left < right)
