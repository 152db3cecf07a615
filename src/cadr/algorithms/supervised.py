"""The labelled rows alone: what every use of the unlabelled ones has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cadr.algorithms.base import Algorithm, Batch, Facts, Model, Output, State, check_range, forward
from cadr.estimate.prior import uniform_prior, update_prior
from cadr.functional import cross_entropy, impute, predictions
from cadr.utils.options import option


@dataclass(frozen=True)
class Supervised(Algorithm):
    """Cross-entropy on the labelled batch; the unlabelled one only passes through batch normalisation."""

    momentum: float = option(0.99, "Momentum of the moving average of predictions, P̂, which is only watched.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("momentum", self.momentum, 0.0, 1.0)

    def init(self, facts: Facts) -> State:
        return {"prior": uniform_prior(facts.num_classes)}

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        labelled, weak, _ = forward(model, batch.labelled, batch.weak, batch.strong)
        prior = update_prior(state["prior"], weak, self.momentum)
        limits = torch.ones_like(prior)  # no confidence exceeds one: no pseudo-label is used
        pseudo, mask = impute(predictions(weak), limits)
        terms = {"supervised": cross_entropy(labelled, batch.labels).mean()}
        return Output(terms, {"prior": prior}, pseudo, mask, limits, prior)
