"""FlexMatch (Zhang et al., NeurIPS 2021): a class's threshold follows how many examples it is given confidently."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.algorithms import store
from cadr.algorithms.base import Facts, State, Terms
from cadr.algorithms.imputation import Predictions, Thresholded
from cadr.utils.options import option


@dataclass(frozen=True)
class FlexMatch(Thresholded):
    """τ_c = τ a_c / (2 − a_c): a class learnt worse than the best gets in more easily."""

    threshold_warm_up: bool = option(
        True, "Compare a class with the examples not yet given to any, while these are more than the largest class."
    )

    def init(self, facts: Facts) -> State:
        return {**super().init(facts), "selected": store.classes(facts.num_unlabelled)}

    def class_thresholds(self, state: State) -> Tensor:
        learned = self.learned(state)
        return self.threshold * learned / (2.0 - learned)

    def learned(self, state: State) -> Tensor:
        """(C,) a_c: examples whose last confident pseudo-label was c, relative to the most."""
        prior, selected = state["prior"], state["selected"]
        counts = torch.zeros(1 + len(prior), device=prior.device)  # first those of no class
        counts = counts.index_add(0, selected + 1, torch.ones_like(selected, dtype=counts.dtype))
        rivals = counts if self.threshold_warm_up else counts[1:]
        return counts[1:] / rivals.amax().clamp(min=1.0)

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)

    def conclude(self, step: Predictions, state: State) -> State:
        """Confident by the fixed threshold, whatever the class's own is."""
        before, index = state["selected"], step.batch.index
        confident = step.predicted.amax(1) > self.threshold
        given = torch.where(confident, step.imputed.labels, before[index])
        return {**state, "selected": store.remember(before, index, given)}
