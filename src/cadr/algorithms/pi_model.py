"""The Π-model (Laine and Aila, "Temporal Ensembling", ICLR 2017), as in the code of FixMatch's authors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from cadr.algorithms.base import (
    Algorithm,
    Batch,
    Facts,
    Model,
    Output,
    State,
    check_choice,
    check_range,
    forward,
    linear_ramp,
    untracked,
)
from cadr.estimate.prior import uniform_prior, update_prior
from cadr.functional import cross_entropy, predictions
from cadr.utils.options import option


@dataclass(frozen=True)
class PiModel(Algorithm):
    """Two weak views of an example shall have the same prediction: a squared difference whose weight rises slowly."""

    lambda_u: float = option(10.0, "Weight of the unlabelled loss after the ramp (w).")
    ramp: float = option(0.4, "Share of training over which the weight rises from 0.")
    statistics: Literal["joint", "labelled"] = option(
        "joint", "Batch norm over all views, as in every method here, or running statistics of the labelled alone."
    )
    momentum: float = option(0.99, "Momentum of the moving average of predictions, P̂, which is only watched.")

    weak_views = 2
    strong_views = 0
    selects = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("lambda_u", self.lambda_u, 0.0, float("inf"))
        check_range("ramp", self.ramp, 0.0, 1.0)
        check_choice("statistics", self.statistics, "joint", "labelled")
        check_range("momentum", self.momentum, 0.0, 1.0)

    def init(self, facts: Facts) -> State:
        return {"prior": uniform_prior(facts.num_classes), "ramp_steps": torch.tensor(self.ramp * facts.steps)}

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        first, second = batch.weak.chunk(2)
        if self.statistics == "joint":
            labelled, teacher, student = forward(model, batch.labelled, first, second)
        else:  # as published: three passes, of which only the first is remembered
            (labelled,) = forward(model, batch.labelled)
            with torch.no_grad():
                (teacher,) = untracked(model, first)
            (student,) = untracked(model, second)
        target = predictions(teacher)  # without a gradient
        weight = self.lambda_u * linear_ramp(batch.step, state["ramp_steps"])
        terms = {
            "supervised": cross_entropy(labelled, batch.labels).mean(),
            "unlabelled": weight * (target - student.softmax(1)).square().mean(),  # over rows and classes
        }
        prior = update_prior(state["prior"], teacher, self.momentum)
        every, none = torch.ones_like(target[:, 0]), torch.zeros_like(prior)  # there is no threshold
        return Output(terms, {**state, "prior": prior}, target.argmax(1), every, none, prior)
