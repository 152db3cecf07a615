"""How long a run will take, told after its first few steps."""

from __future__ import annotations

from collections.abc import Callable

_LOOK = 0.5  # seconds of steps from which the pace is told


def seconds_left(go: Callable[[int], float], most: int, left: int) -> float:
    """How long `left` steps will take, by at most `most` of them; `go(n)` takes n and returns their seconds."""
    go(1)  # the first is slower than the others
    pace = go(1)
    few = min(int(_LOOK / max(pace, 1e-9)), most - 2)
    if few > 0:  # what it takes to begin is as long as a short step
        pace = go(few) / few
    return pace * left
