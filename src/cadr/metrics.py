"""How good predictions are: functions of counts, so that the counting can stay on the device.

Everything is in percent. A class without examples has no recall: it is nan, and left out of means.
"""

from __future__ import annotations

import torch
from torch import Tensor


def confusion(truth: Tensor, predicted: Tensor, num_classes: int) -> Tensor:
    """Counts (C, C) int64, truth down, prediction across; rows whose truth is −1 (unknown) do not count."""
    known = truth >= 0
    cell = torch.where(known, truth * num_classes + predicted, 0)
    counts = torch.zeros(num_classes * num_classes, dtype=torch.int64, device=truth.device)
    return counts.index_add_(0, cell, known.to(torch.int64)).reshape(num_classes, num_classes)


def accuracy(counts: Tensor) -> float:
    """Right predictions, in percent."""
    return 100.0 * float(counts.diagonal().sum()) / float(counts.sum())


def recall(counts: Tensor) -> Tensor:
    """How much of each class was found, in percent, (C,) float64."""
    return 100.0 * counts.diagonal().double() / counts.sum(1).double()


def geometric_mean(counts: Tensor) -> float:
    """Geometric mean of the recalls, where one of zero counts as a hundredth of chance: 1/(100·C).

    This is the rule of the benchmark's authors; without it one lost class would make every method's mean zero.
    """
    found = recall(counts) / 100.0
    found = found[~found.isnan()]
    found = torch.where(found == 0.0, 1.0 / (100.0 * len(counts)), found)
    return 100.0 * float(found.log().mean().exp())


def count_pseudo_labels(truth: Tensor, pseudo: Tensor, used: Tensor, num_classes: int) -> Tensor:
    """Counts (C + 1, C, 2) int64 by truth (the first row: unknown), pseudo-label, and whether the label was used."""
    cell = ((truth + 1) * num_classes + pseudo) * 2 + used.to(torch.int64)
    counts = torch.zeros((num_classes + 1) * num_classes * 2, dtype=torch.int64, device=truth.device)
    return counts.index_add_(0, cell, torch.ones_like(cell)).reshape(num_classes + 1, num_classes, 2)


def pseudo_label_quality(counts: Tensor) -> dict[str, Tensor]:
    """What pseudo-labels were given and how good they were, each (C,), from `count_pseudo_labels`.

    predicted: share of all pseudo-labels that name the class; used: share of those that were used;
    precision: share of the used ones whose truth, where known, agrees; coverage: share of the class's examples that
    got a used pseudo-label, right or wrong.
    """
    counts = counts.double()
    known = counts[1:]  # (truth, pseudo, used)
    return {
        "predicted": 100.0 * counts.sum((0, 2)) / counts.sum(),
        "used": 100.0 * counts[..., 1].sum(0) / counts.sum((0, 2)),
        "precision": 100.0 * known[..., 1].diagonal() / known[..., 1].sum(0),
        "coverage": 100.0 * known[..., 1].sum(1) / known.sum((1, 2)),
    }
