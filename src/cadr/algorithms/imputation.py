"""The step that FixMatch and its descendants share: one pass, the new P̂, thresholds, pseudo-labels, named terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch import Tensor

from cadr.algorithms.base import Batch, Facts, Model, Output, State, Terms, check_choice, check_range, forward
from cadr.data.option import option
from cadr.estimate.prior import uniform_prior, update_prior
from cadr.functional import Imputed, cross_entropy, impute, predictions, thresholds


class Step(NamedTuple):
    """What is at hand when the terms of the objective are computed."""

    labelled: Tensor  # (B, C) logits
    labels: Tensor  # (B,)
    weak: Tensor  # (U, C) logits of the unlabelled weak views
    strong: Tensor  # (U, C) logits of the unlabelled strong views
    state: State  # before this step: CAP's marginal has the value of state["prior"]
    prior: Tensor  # (C,) after this step: thresholds come from it
    thresholds: Tensor  # (C,)
    predicted: Tensor  # (U, C) probabilities the pseudo-labels were read off
    imputed: Imputed


@dataclass(frozen=True)
class Imputation(ABC):
    """The fields and the step; a method on top of it says which terms it adds up."""

    threshold: float = option(0.95, "Confidence above which a pseudo-label is used (τ_o, Eq. 11).")
    lambda_u: float = option(1.0, "Weight of the unlabelled loss.")
    pseudo_labels: Literal["hard", "soft"] = option("hard", "Impute the predicted class, or all probabilities.")
    momentum: float = option(0.99, "Momentum of the moving average of predictions, P̂ (μ, Eq. 10).")

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 0.0, 1.0)
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_choice("pseudo_labels", self.pseudo_labels, "hard", "soft")

    def init(self, facts: Facts) -> State:
        return {"prior": uniform_prior(facts.num_classes)}

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        labelled, weak, strong = forward(model, batch.labelled, batch.weak, batch.strong)
        prior = update_prior(state["prior"], weak, self.momentum)
        limits = self.class_thresholds(state, prior)
        predicted = self.predict(weak, state, prior)
        imputed = impute(predicted, limits)
        terms = self.terms(Step(labelled, batch.labels, weak, strong, state, prior, limits, predicted, imputed))
        return Output(terms, {**state, "prior": prior}, imputed.labels, imputed.mask, limits, prior)

    def class_thresholds(self, state: State, prior: Tensor) -> Tensor:
        return thresholds(prior, self.threshold, beta=0.0)

    def predict(self, weak: Tensor, state: State, prior: Tensor) -> Tensor:
        return predictions(weak)

    @abstractmethod
    def terms(self, step: Step) -> Terms:
        """The named terms whose sum is the objective."""

    def supervised(self, step: Step) -> Terms:
        return {"supervised": cross_entropy(step.labelled, step.labels).mean()}

    def unlabelled(self, step: Step) -> Terms:
        """Mean over all rows, used or not: a batch of few confident rows must weigh little."""
        targets = step.imputed.labels if self.pseudo_labels == "hard" else step.predicted
        return {"unlabelled": self.lambda_u * (step.imputed.mask * cross_entropy(step.strong, targets)).mean()}
