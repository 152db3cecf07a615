"""FixMatch (Sohn et al., NeurIPS 2020), with distribution alignment (Berthelot et al., ICLR 2020) as an option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from cadr.algorithms.base import Facts, State, Terms, check_choice, target_distribution
from cadr.algorithms.imputation import Imputation, Step
from cadr.data.option import option
from cadr.errors import ConfigError
from cadr.functional import predictions

_SMALL = 1e-6  # keeps the ratio of target and P̂ finite


@dataclass(frozen=True)
class FixMatch(Imputation):
    """Confident predictions on weak views become labels of the strong views."""

    alignment: Literal["none", "uniform", "given"] = option(
        "none", "Align predictions with a class distribution before pseudo-labels are read off."
    )
    target_prior: tuple[float, ...] = option((), "The class distribution of --alignment given, one number per class.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("alignment", self.alignment, "none", "uniform", "given")
        if (self.alignment == "given") != bool(self.target_prior):
            raise ConfigError("target_prior belongs to alignment 'given': set both of them, or neither.")

    def init(self, facts: Facts) -> State:
        return {**super().init(facts), "target": target_distribution(self.target_prior, facts.num_classes)}

    def predict(self, weak: Tensor, state: State, prior: Tensor) -> Tensor:
        predicted = predictions(weak)
        if self.alignment == "none":
            return predicted
        aligned = predicted * ((state["target"] + _SMALL) / (prior + _SMALL))
        return aligned / aligned.sum(1, keepdim=True)

    def terms(self, step: Step) -> Terms:
        return self.supervised(step) | self.unlabelled(step)
