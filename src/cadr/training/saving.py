"""When a run is saved: every so many seconds, when it is stopped and at its end, but every step only once.

A second checkpoint of the same step would push out the one before it, which is kept for when the newest is damaged.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from torch import Tensor

from cadr.training import checkpoint


class Saving:
    """Writes the checkpoints of a run, and knows of which step the newest is."""

    def __init__(self, out: Path, every: float) -> None:
        self.out, self.every = out, every  # seconds
        self.kept: int | None = None  # the step that the newest checkpoint is of
        self.since = time.perf_counter()

    def due(self) -> bool:
        return time.perf_counter() - self.since >= self.every

    def save(self, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        if step == self.kept:
            return
        checkpoint.save(self.out, tensors, facts)
        self.kept, self.since = step, time.perf_counter()
