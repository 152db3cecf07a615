"""Numbers for records: when they are due, and how they are written down."""

from __future__ import annotations

import resource

import torch
from torch import Tensor

from cadr import metrics
from cadr.config import Training
from cadr.training.record import Record


def evaluation_points(training: Training) -> set[int]:
    """Evenly spread, the last at the end."""
    count = min(training.evaluations, training.steps)
    return {round(training.steps * i / count) for i in range(1, count + 1)}


def stopping_points(training: Training) -> list[int]:
    """Where a log record is due: every `log_every` steps, and at every evaluation."""
    every = training.log_every or max(10, training.steps // (4 * training.evaluations))
    return sorted(evaluation_points(training) | set(range(every, training.steps + 1, every)))


def scores(counts: Tensor) -> Record:
    """What an evaluation says, from confusion counts."""
    return {
        "accuracy": rounded(metrics.accuracy(counts)),
        "gm": rounded(metrics.geometric_mean(counts)),
        "recall": listed(metrics.recall(counts)),
        "confusion": counts.tolist(),
    }


def peak_memory_gib(device: torch.device) -> float:
    """Of the device where it has memory of its own, of the process otherwise."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device)) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def rounded(value: float) -> float:
    return float(f"{value:.7g}")


def listed(values: Tensor) -> list[float | None]:
    """For JSON, which knows no nan: what is undefined is null."""
    return [None if value != value else rounded(value) for value in values.tolist()]
