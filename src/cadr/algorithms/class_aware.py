"""The two halves of the paper, with everything its ablations vary: fields first, one method each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from cadr.algorithms.base import Facts, State, Terms, check_choice, check_range, target_distribution
from cadr.algorithms.imputation import Imputation, Predictions, Thresholded
from cadr.estimate.prior import log_marginal
from cadr.functional import correction, thresholds
from cadr.utils.options import option


@dataclass(frozen=True)
class ClassAwarePropensity(Imputation):
    """What CAP adds to cross-entropy."""

    renamed: ClassVar[tuple[str, ...]] = ("prior",)

    form: Literal["straight_through", "batch", "pinv"] = option(
        "straight_through", "How the class marginal gets its gradient; pinv is the authors' code."
    )
    normaliser: Literal["jensen", "none"] = option(
        "jensen", "Normalise 1/p̃ over the labelled batch, or not (unbounded below)."
    )
    target_prior: tuple[float, ...] | Literal["estimated"] = option(
        (),
        "The class prior of all rows, which predictions are matched to; uniform when not given, or 'estimated' during "
        "training.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("form", self.form, "straight_through", "batch", "pinv")
        check_choice("normaliser", self.normaliser, "jensen", "none")

    def init(self, facts: Facts) -> State:
        return {**super().init(facts), **self.towards(self.aimed_at(facts.num_classes))}

    def towards(self, target: Tensor) -> State:
        # Relative to uniform, so that a uniform target leaves p̃ untouched also without the normaliser.
        return {"log_target": torch.log(len(target) * target)}

    def aimed_at(self, num_classes: int) -> Tensor:
        return target_distribution(self.target_prior, num_classes)

    @property
    def capturable(self) -> bool:
        """A pseudo-inverse waits for the host, which a CUDA graph cannot record."""
        return self.form != "pinv"

    def marginal(self, step: Predictions) -> Tensor:
        """log p̃ relative to the target: with the value of P̂ before this step, and the gradient of its batch."""
        return log_marginal(step.weak, step.state["prior"], self.form) - step.state["log_target"]

    def cap(self, step: Predictions, marginal: Tensor) -> Terms:
        return {"propensity": correction(marginal, step.labels, self.normaliser).mean()}


@dataclass(frozen=True)
class ClassAwareImputation(Thresholded):
    """CAI's thresholds."""

    renamed: ClassVar[tuple[str, ...]] = ("prior",)

    beta: float = option(0.5, "How far thresholds follow the class prior (β, Eq. 11); 0 is FixMatch.")
    threshold_floor: float = option(0.0, "No class's threshold falls below this.")
    threshold_prior: Literal["predicted", "label"] = option(
        "predicted", "Thresholds follow P̂, or the distribution of the labels (the paper's ablation)."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("beta", self.beta, 0.0, float("inf"))
        check_range("threshold_floor", self.threshold_floor, 0.0, 1.0)
        check_choice("threshold_prior", self.threshold_prior, "predicted", "label")

    def init(self, facts: Facts) -> State:
        return {**super().init(facts), "labelled_counts": facts.labelled_counts.to(torch.float32)}

    def class_thresholds(self, state: State) -> Tensor:
        followed = self.predicted(state) if self.threshold_prior == "predicted" else state["labelled_counts"]
        return thresholds(followed, self.threshold, self.beta, self.threshold_floor)

    def predicted(self, state: State) -> Tensor:
        """(C,) how often each class is predicted, which thresholds follow."""
        return state["prior"]


@dataclass(frozen=True)
class ClassAware(ClassAwareImputation, ClassAwarePropensity):
    """Both halves, with one target: a class that is as rare as it should be gets no lower threshold for it."""

    def predicted(self, state: State) -> Tensor:
        return state["prior"] / torch.exp(state["log_target"])
