"""What a run has spent so far, over all processes that have worked on it, and how long it will take."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Spent = dict[str, float]
_LOOK = 0.5  # seconds of steps from which the pace is told
_AT_LEAST = 2  # steps
_TOO_LONG = 1200.0  # seconds
_SIDE = 32  # pixels, of the pictures that the networks were made for


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


def seconds_left(go: Callable[[int], float], most: int, left: int) -> float:
    """How long `left` steps will take, by at most `most` of them; `go(n)` takes n and returns their seconds."""
    go(1)  # the first is slower than the others
    pace = go(1)
    few = min(max(int(_LOOK / max(pace, 1e-9)), _AT_LEAST), most - 2)
    if few > 0:  # what it takes to begin is as long as a short step, and the second may still be slow
        pace = go(few) / few
    return pace * left


def advice(seconds: float, side: int) -> str:
    """What is quicker where a network learns pictures of so many pixels a side without a GPU, if it takes too long."""
    if seconds < _TOO_LONG:
        return ""
    times = round((side / _SIDE) ** 2)
    smaller = f"--image-size {_SIDE} takes about {times} times fewer operations, and " if times > 1 else ""
    return (
        " That is long, as there is no GPU. Photographs are learned in minutes, and mostly better, from a pretrained "
        f"model: --features NAME (docs/features.md). Without one, {smaller}--minutes 15 takes as many steps as go into "
        "a quarter of an hour; expect a far lower accuracy than published, which takes all the steps."
    )


def peak_memory_gib(device: torch.device) -> float:
    """Of the device where it has memory of its own, of the process otherwise."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device)) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
