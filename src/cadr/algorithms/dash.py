"""DASH (Xu et al., "Dash: Semi-Supervised Learning with Dynamic Thresholding", ICML 2021).

A pseudo-label is used when its own loss on the weak view, −log max p, is below ρ_t = ρ̂ · decay^−⌊(t − 1)/9⌋, which is
never less than ρ_min. Time t counts 1/1024 of the run, as the published run had 1,024 epochs, so that a run of any
length sees the same decay. Up to t = 10 every row is used; ρ̂ is the mean unlabelled loss in the last of these ten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.algorithms.base import Batch, Facts, State, Terms, check_range
from cadr.algorithms.imputation import Imputation, Predictions
from cadr.algorithms.mixing import one_hot
from cadr.functional import cross_entropy, predictions
from cadr.utils.options import option

_EPOCHS = 1024  # of the published run
_EVERYTHING = 500.0  # the published ρ while every row is used: no loss is as large


@dataclass(frozen=True)
class DASH(Imputation):
    """A threshold that starts low and rises with the run; soft pseudo-labels until it has risen to its end."""

    lambda_u: float = option(0.9, "Weight of the unlabelled loss, a mean over the rows that are used.")
    decay: float = option(1.27, "Factor by which the threshold on the loss, ρ, falls at each drop (γ in the paper).")
    drop_every: int = option(9, "Drops come every so many 1024ths of the run.")
    warm_up: int = option(10, "So many 1024ths of the run use every row, and the last of them measures ρ̂.")
    rho_min: float = option(0.05, "Where ρ stops to fall; pseudo-labels are hard from there on.")
    temperature: float = option(0.5, "Softmax temperature of the soft pseudo-labels before.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("decay", self.decay, 1.0, float("inf"))
        check_range("drop_every", self.drop_every, 1, _EPOCHS)
        check_range("warm_up", self.warm_up, 0, _EPOCHS)
        check_range("temperature", self.temperature, 1e-3, float("inf"))

    def init(self, facts: Facts) -> State:
        end = max(1, math.ceil(self.warm_up * facts.steps / _EPOCHS))  # at least one step, or ρ̂ would be unknown
        begin = end - min(end, max(1, facts.steps // _EPOCHS))
        times = {"measured_from": begin, "warm_up_ends": end, "steps": facts.steps}
        numbers = {name: torch.tensor(value) for name, value in times.items()}
        return {**super().init(facts), **numbers, "rho_start": torch.zeros(()), "rho": torch.tensor(_EVERYTHING)}

    def observe(self, weak: Tensor, batch: Batch, state: State) -> State:
        drops = (batch.step * _EPOCHS // state["steps"] - 1) // self.drop_every
        rho = state["rho_start"] * torch.exp(-math.log(self.decay) * drops)
        rho = torch.where(batch.step < state["warm_up_ends"], _EVERYTHING, rho)
        return {**super().observe(weak, batch, state), "rho": rho}

    def class_thresholds(self, state: State) -> Tensor:
        """A loss below ρ is a confidence above exp(−ρ)."""
        return torch.exp(-state["rho"].clamp(min=self.rho_min)).expand_as(state["prior"])

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)

    def targets(self, step: Predictions) -> Tensor:
        hard = one_hot(step.imputed.labels, step.predicted)
        return torch.where(step.seen["rho"] > self.rho_min, predictions(step.weak / self.temperature), hard)

    def unlabelled(self, step: Predictions) -> Terms:
        used, rows = step.imputed.mask, self.losses(step)
        return {"unlabelled": self.lambda_u * (used * rows).sum() / used.sum().clamp(min=1.0)}

    def losses(self, step: Predictions) -> Tensor:
        return cross_entropy(step.strong, self.targets(step))

    def conclude(self, step: Predictions, state: State) -> State:
        begin, end, now = state["measured_from"], state["warm_up_ends"], step.batch.step
        share = torch.where((now >= begin) & (now < end), 1.0 / (end - begin), 0.0)
        return {**state, "rho_start": state["rho_start"] + share * self.losses(step).detach().mean()}
