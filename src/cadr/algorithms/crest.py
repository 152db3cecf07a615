"""CReST and CReST+ (Wei et al., "CReST: A Class-Rebalancing Self-Training Framework", CVPR 2021), on FixMatch.

Training starts afresh in every generation. After each, predictions for unlabelled examples join the given labels, of a
rare class more generously than of a frequent one, since rare classes are predicted seldom but then rightly. How rare a
class is, is read off the labels: where they are missing not at random that need not be how rare it is.

The run's steps are shared by the generations (the paper gives 2^16 to each of its 6), each with its own schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.algorithms.alignment import align
from cadr.algorithms.base import Batch, Facts, State, Terms, check_range
from cadr.algorithms.imputation import Predictions, Thresholded
from cadr.errors import ConfigError
from cadr.utils.options import option


@dataclass(frozen=True)
class CReST(Thresholded):
    """FixMatch in generations."""

    generations: int = option(6, "How often training starts afresh; they share the steps.")
    alpha: float = option(3.0, "How generously frequent classes are adopted too (α); 1 is proportional to rarity.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("generations", self.generations, 1, float("inf"))
        if not self.alpha > 0:
            raise ConfigError(f"alpha must be above 0, not {self.alpha:g}.")

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)

    def enlarge(self, predicted: Tensor, facts: Facts) -> Tensor:
        """Of what is predicted as a class, its most confident share, given by `sampling_rates`."""
        confidence, classes = predicted.max(1)
        adopted = torch.full_like(classes, -1)
        for c, rate in enumerate(sampling_rates(facts.labelled_counts, self.alpha).tolist()):
            rows = torch.nonzero(classes == c).squeeze(1)
            surest = torch.argsort(confidence[rows], descending=True, stable=True)
            adopted[rows[surest[: int(len(rows) * rate)]]] = c
        return adopted


@dataclass(frozen=True)
class CReSTPlus(CReST):
    """CReST, with predictions aligned to the labels' distribution, ever more loosely from generation to generation."""

    t_min: float = option(0.5, "The target is π^t, normalised; t falls from 1 to this in the last generation.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("t_min", self.t_min, 0.0, 1.0)

    def init(self, facts: Facts) -> State:
        progress = facts.generation / max(self.generations - 1, 1)
        target = facts.labelled_counts.float() ** ((1 - progress) + progress * self.t_min)
        return {**super().init(facts), "target": target / target.sum()}

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        return align(super().predict(weak, batch, state), state["target"], state["prior"])


def sampling_rates(counts: Tensor, alpha: float) -> Tensor:
    """(C,) (N_{C+1−r} / N_1)^(1/α) for the class with the r-th most labels: 1 for the rarest."""
    order = torch.argsort(counts, descending=True, stable=True)
    ordered = counts[order].double()
    rates = torch.empty_like(ordered)
    rates[order] = (ordered.flip(0) / ordered[0]) ** (1 / alpha)
    return rates
