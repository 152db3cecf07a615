"""MixMatch (Berthelot et al., NeurIPS 2019), with the settings of FixMatch's authors' code.

That code interleaves the mixed batches, so that batch norm sees labelled and unlabelled rows together, and remembers
the statistics of one of them. Here all mixed rows go through the network in one pass, which is what that imitates; the
pass that guesses labels leaves the running statistics alone, as theirs does.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cadr.algorithms.base import (
    Algorithm,
    Batch,
    Facts,
    Model,
    Output,
    State,
    check_range,
    forward,
    linear_ramp,
    untracked,
)
from cadr.algorithms.mixing import mixup, one_hot, sharpen
from cadr.estimate.prior import uniform_prior, update_prior
from cadr.functional import cross_entropy, predictions
from cadr.utils.options import VIEWS, option


@dataclass(frozen=True)
class MixMatch(Algorithm):
    """Guess a label from the views of an example, sharpen it, and mix all rows; a squared loss on the unlabelled."""

    alpha: float = option(0.5, "Mixing weights come from Beta(α, α); 0 mixes nothing.")
    temperature: float = option(0.5, "Sharpening of the guessed labels (T); 1 leaves them.")
    lambda_u: float = option(100.0, "Weight of the unlabelled loss after the ramp.")
    ramp: float = option(0.125, "Share of training over which the weight rises from 0 (16,384 of 2^17 steps).")
    weak_views: int = option(2, "Views from which a label is guessed (K).")
    momentum: float = option(0.99, "Momentum of the moving average of predictions, P̂, which is only watched.")

    strong_views = 0
    selects = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("alpha", self.alpha, 0.0, float("inf"))
        check_range("temperature", self.temperature, 1e-3, float("inf"))
        check_range("lambda_u", self.lambda_u, 0.0, float("inf"))
        check_range("ramp", self.ramp, 0.0, 1.0)
        check_range("weak_views", self.weak_views, 1, VIEWS)
        check_range("momentum", self.momentum, 0.0, 1.0)

    def init(self, facts: Facts) -> State:
        return {"prior": uniform_prior(facts.num_classes), "ramp_steps": torch.tensor(self.ramp * facts.steps)}

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        with torch.no_grad():
            (weak,) = untracked(model, batch.weak)
        views = predictions(weak).chunk(self.weak_views)
        guess = sharpen(torch.stack(views).mean(0), self.temperature)

        targets = torch.cat((one_hot(batch.labels, guess), guess.repeat(self.weak_views, 1)))
        mixed, targets = mixup(torch.cat((batch.labelled, batch.weak)), targets, batch.key, self.alpha)
        size = len(batch.labels)
        labelled, unlabelled = forward(model, mixed[:size], mixed[size:])
        weight = self.lambda_u * linear_ramp(batch.step, state["ramp_steps"])
        terms = {
            "supervised": cross_entropy(labelled, targets[:size]).mean(),
            "unlabelled": weight * (targets[size:] - unlabelled.softmax(1)).square().mean(),
        }
        prior = update_prior(state["prior"], weak.chunk(self.weak_views)[0], self.momentum)
        every, none = torch.ones_like(guess[:, 0]), torch.zeros_like(prior)  # there is no threshold
        return Output(terms, {**state, "prior": prior}, guess.argmax(1), every, none, prior)
