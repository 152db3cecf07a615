"""What a run has spent so far, over all processes that have worked on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from cadr.training.schedule import peak_memory_gib

Spent = dict[str, float]


class Clock:
    """Runs from when it is made. `before` is what earlier processes have spent."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.begun = time.perf_counter()
        self.before: Spent = {"seconds": 0.0, "step_seconds": 0.0, "peak_memory_gib": 0.0}
        self.step_seconds = 0.0  # of this process

    @contextmanager
    def steps(self) -> Iterator[None]:
        """Around steps, whose time is also counted apart."""
        start = time.perf_counter()
        yield
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.step_seconds += time.perf_counter() - start

    def spent(self) -> Spent:
        return {
            "seconds": self.before["seconds"] + time.perf_counter() - self.begun,
            "step_seconds": self.before["step_seconds"] + self.step_seconds,
            "peak_memory_gib": max(self.before["peak_memory_gib"], peak_memory_gib(self.device)),
        }

    def timing(self, steps: int, images: int) -> Spent:
        """For a record after so many steps of so many images each."""
        spent = self.spent()
        pace = steps / spent["step_seconds"]
        return {
            "seconds": round(spent["seconds"], 3),
            "steps_per_second": round(pace, 2),
            "images_per_second": round(pace * images, 1),
            "memory_gib": round(spent["peak_memory_gib"], 3),
        }
