"""What an accuracy is worth that was judged on few examples, in words."""

from __future__ import annotations

import math

FEW = 300  # examples, below which an accuracy is not worth its decimals
_NAMES = {"test": "test examples", "held_out": "rows held out", "validation": "labels held out"}


def caution(accuracy: float, examples: int, on: str) -> str:
    """Blank where there are enough. With a dozen labels held out "100 %" means little, and somebody has to say so."""
    biased = on == "validation"
    if examples >= FEW and not biased:
        return ""
    words = []
    if examples < FEW:
        low, high = wilson(accuracy / 100.0, examples)
        words.append(
            f"It is judged on {examples} {_NAMES[on]} only: it may be anything from {100 * low:.0f} to "
            f"{100 * high:.0f} % (95 % interval)."
        )
    if biased:
        words.append("Labels held out are as biased as all labels: classes that are seldom labelled hardly count.")
    return " ".join(words)


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share of n; unlike the simple one it does not shrink to a point at 100 %."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return middle - half, middle + half
