"""The step that FixMatch and its descendants share: one pass, the new P̂, thresholds, pseudo-labels, named terms."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch import Tensor

from cadr.algorithms.base import (
    Algorithm,
    Batch,
    Facts,
    Model,
    Output,
    State,
    Terms,
    check_choice,
    check_range,
    forward,
)
from cadr.errors import ConfigError
from cadr.estimate.prior import uniform_prior, update_prior
from cadr.functional import Imputed, cross_entropy, impute, predictions, thresholds
from cadr.utils.options import option


class Predictions(NamedTuple):
    """What is at hand when the terms of the objective are computed."""

    labelled: Tensor  # (B, C) logits, or those of several views, one after another
    labels: Tensor  # (B,)
    weak: Tensor  # (U, C) logits of the unlabelled weak views
    strong: Tensor  # (U, C) logits of the unlabelled strong views, or of several
    batch: Batch
    state: State  # before this step: CAP's marginal has the value of state["prior"]
    seen: State  # with this batch's weak views in its averages: thresholds and pseudo-labels come from it
    prior: Tensor  # (C,) seen["prior"]
    thresholds: Tensor  # (C,)
    predicted: Tensor  # (U, C) probabilities the pseudo-labels were read off
    imputed: Imputed


@dataclass(frozen=True)
class Imputation(Algorithm):
    """The fields and the step. A method says which terms it adds up, and overrides what it does differently.

    The order of a step: `observe` the weak views, `class_thresholds`, `predict`, `impute`, `terms`, `conclude`.
    """

    lambda_u: float = option(1.0, "Weight of the unlabelled loss.")
    momentum: float = option(0.99, "Momentum of the moving average of predictions, P̂ (μ, Eq. 10).")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_range("lambda_u", self.lambda_u, 0.0, float("inf"))

    def init(self, facts: Facts) -> State:
        return {"prior": uniform_prior(facts.num_classes)}

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        labelled, weak, strong = forward(model, batch.labelled, batch.weak, batch.strong)
        seen = self.observe(weak, batch, state)
        limits = self.class_thresholds(seen)
        predicted = self.predict(weak, batch, seen)
        imputed = self.impute(predicted, limits, seen)
        prior = seen["prior"]
        step = Predictions(labelled, batch.labels, weak, strong, batch, state, seen, prior, limits, predicted, imputed)
        return Output(self.terms(step), self.conclude(step, seen), imputed.labels, imputed.mask, limits, prior)

    def observe(self, weak: Tensor, batch: Batch, state: State) -> State:
        """The state with this batch's weak views in its averages: pseudo-labels and thresholds come from it."""
        return {**state, "prior": update_prior(state["prior"], weak, self.momentum)}

    @abstractmethod
    def class_thresholds(self, state: State) -> Tensor:
        """(C,) the confidence above which a pseudo-label of the class is used."""

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        """(U, C) the probabilities that pseudo-labels are read off."""
        return predictions(weak)

    def impute(self, predicted: Tensor, limits: Tensor, state: State) -> Imputed:
        return impute(predicted, limits)

    @abstractmethod
    def terms(self, step: Predictions) -> Terms:
        """The named terms whose sum is the objective."""

    def conclude(self, step: Predictions, state: State) -> State:
        """The state that the next step begins with: `state` and what is remembered of this step's outcome."""
        return state

    def supervised(self, step: Predictions) -> Terms:
        return {"supervised": cross_entropy(step.labelled, step.labels).mean()}

    def unlabelled(self, step: Predictions) -> Terms:
        """Mean over all rows, used or not: a batch of few confident rows must weigh little."""
        losses = cross_entropy(step.strong, self.targets(step))
        return {"unlabelled": self.lambda_u * (step.imputed.mask * losses).mean()}

    def targets(self, step: Predictions) -> Tensor:
        """What strong views are taught: classes, or probabilities."""
        return step.imputed.labels


@dataclass(frozen=True)
class Thresholded(Imputation):
    """One threshold for all classes, for the whole run."""

    threshold: float = option(0.95, "Confidence above which a pseudo-label is used (τ_o, Eq. 11).")
    pseudo_labels: Literal["hard", "soft"] = option("hard", "Impute the predicted class, or all probabilities.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("threshold", self.threshold, 0.0, 1.0)
        check_choice("pseudo_labels", self.pseudo_labels, "hard", "soft")

    def class_thresholds(self, state: State) -> Tensor:
        return thresholds(state["prior"], self.threshold, beta=0.0)

    def targets(self, step: Predictions) -> Tensor:
        return step.imputed.labels if self.pseudo_labels == "hard" else step.predicted


@dataclass(frozen=True)
class Rebalanced(Imputation):
    """Re-balancing of the labelled rows, as a modifier of any method that imputes: of FixMatch and of CADR alike.

    A modifier is a class over `Imputation` that changes the supervised term, or how labelled rows are drawn, and
    nothing else; `Reweighting(Reweighted, FixMatch)` and `ReweightedCADR(Reweighted, CADR)` are then whole methods.
    It must not meet labelled rows that are weighted already.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self, "propensity", "paper") == "class":
            raise ConfigError(
                "propensity 'class' weights the labelled rows already: take plain cadr, or propensity 'paper'."
            )
