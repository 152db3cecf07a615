"""ReMixMatch (Berthelot et al., ICLR 2020), with the settings of FixMatch's authors' code.

Passes: one without gradient over the weak views, which guesses labels; one over all mixed rows, whose batch norm
statistics are remembered; one over the unmixed and the turned strong views, whose statistics are not.

The published target of the alignment is the distribution of the labels. Where labels are missing not at random that is
the very bias, and the guesses are pulled towards it: `alignment` may be uniform or given instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cadr.algorithms.alignment import align
from cadr.algorithms.base import (
    Algorithm,
    Batch,
    Facts,
    Model,
    Output,
    State,
    Terms,
    check_belonging,
    check_choice,
    check_range,
    forward,
    linear_ramp,
    target_distribution,
    untracked,
)
from cadr.algorithms.mixing import as_views_lie, mixup, one_hot, sharpen
from cadr.estimate.prior import uniform_prior, update_prior
from cadr.functional import cross_entropy, predictions
from cadr.utils.options import VIEWS, option

_TURNS = 4
_WINDOW = 128  # batches over which predictions are averaged
_LABEL_MOMENTUM = 0.999


@dataclass(frozen=True)
class ReMixMatch(Algorithm):
    """MixMatch with aligned guesses as targets of strong views, and with telling how far a view was turned."""

    alpha: float = option(0.75, "Mixing weights come from Beta(α, α); 0 mixes nothing.")
    temperature: float = option(0.5, "Sharpening of the guessed labels (T); 1 leaves them.")
    strong_views: int = option(8, "Strong views of each unlabelled example (K).")
    lambda_u: float = option(1.5, "Weight of the loss on mixed unlabelled views after the ramp.")
    lambda_u1: float = option(0.5, "Weight of the loss on one unmixed strong view after the ramp.")
    lambda_r: float = option(0.5, "Weight of the rotation loss; 0 for data that cannot be turned.")
    ramp: float = option(0.125, "Share of training over which weights rise from 0 (16,384 of 2^17 steps).")
    alignment: Literal["labelled", "uniform", "given"] = option(
        "labelled", "Class distribution that guesses are aligned with: the labels', as published, or another."
    )
    target_prior: tuple[float, ...] = option(
        (), "The class distribution of --alignment given, one number per class.", belongs_to=("alignment", "given")
    )
    momentum: float = option(0.99, "Momentum of the moving average of predictions, P̂, which is only watched.")

    selects = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "lambda_u", "lambda_u1", "lambda_r"):
            check_range(name, getattr(self, name), 0.0, float("inf"))
        check_range("temperature", self.temperature, 1e-3, float("inf"))
        check_range("strong_views", self.strong_views, 1, VIEWS)
        check_range("ramp", self.ramp, 0.0, 1.0)
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_choice("alignment", self.alignment, "labelled", "uniform", "given")
        check_belonging(self)

    @property
    def rotates(self) -> bool:
        return self.lambda_r > 0

    @property
    def auxiliary(self) -> int:
        return _TURNS if self.rotates else 0

    def init(self, facts: Facts) -> State:
        uniform = uniform_prior(facts.num_classes)
        return {
            "prior": uniform,
            "ramp_steps": torch.tensor(self.ramp * facts.steps),
            "target": target_distribution(self.target_prior, facts.num_classes),  # "labelled" learns it from batches
            "recent": uniform.repeat(_WINDOW, 1),
        }

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        classes, size = len(state["prior"]), len(batch.labels)
        with torch.no_grad():
            weak = untracked(model, batch.weak)[0][:, :classes]
        predicted = predictions(weak)
        aligned = align(predicted, state["target"], state["recent"].mean(0))  # both as they were before this step
        guess = sharpen(aligned, self.temperature)

        labels = one_hot(batch.labels, guess)
        targets = torch.cat((labels, guess.repeat(1 + self.strong_views, 1)))
        mixed, targets = mixup(torch.cat((batch.labelled, batch.weak, batch.strong)), targets, batch.key, self.alpha)
        labelled, unlabelled = forward(model, mixed[:size], mixed[size:])
        weight = linear_ramp(batch.step, state["ramp_steps"])
        terms = {
            "supervised": cross_entropy(labelled[:, :classes], targets[:size]).mean(),
            "unlabelled": self.lambda_u * weight * cross_entropy(unlabelled[:, :classes], targets[size:]).mean(),
            **self.unmixed(model, batch.strong.chunk(self.strong_views)[0], guess, weight),
        }
        prior = update_prior(state["prior"], weak, self.momentum)
        every, none = torch.ones_like(guess[:, 0]), torch.zeros_like(prior)  # there is no threshold
        new = {**state, "prior": prior, **self.averages(predicted, labels, state)}
        return Output(terms, new, guess.argmax(1), every, none, prior)

    def unmixed(self, model: Model, strong: Tensor, guess: Tensor, weight: Tensor) -> Terms:
        """On one strong view: the guess again, and how far it was turned."""
        classes = guess.shape[1]
        if not self.rotates:
            (logits,) = untracked(model, strong)
            return {"unmixed": self.lambda_u1 * weight * cross_entropy(logits, guess).mean()}
        turned, turns = turn(strong)
        logits, turned_logits = untracked(model, strong, turned)
        return {
            "unmixed": self.lambda_u1 * weight * cross_entropy(logits[:, :classes], guess).mean(),
            "rotation": self.lambda_r * cross_entropy(turned_logits[:, classes:], turns).mean(),
        }

    def averages(self, predicted: Tensor, labels: Tensor, state: State) -> State:
        """The window of mean predictions moves on by a batch; so does the target where it is that of the labels."""
        recent = torch.cat((state["recent"][1:], predicted.mean(0, keepdim=True)))
        if self.alignment != "labelled":
            return {"recent": recent}
        return {"recent": recent, "target": torch.lerp(state["target"], labels.mean(0), 1 - _LABEL_MOMENTUM)}


def turn(images: Tensor) -> tuple[Tensor, Tensor]:
    """A quarter of the rows each turned by 0, 1, 2 and 3 quarters of a turn, and by how many."""
    parts = torch.tensor_split(images, _TURNS)
    turned = torch.cat([torch.rot90(part, k, (2, 3)) for k, part in enumerate(parts)])
    turns = torch.cat([torch.full((len(part),), k, device=images.device) for k, part in enumerate(parts)])
    return as_views_lie(turned, images.dtype), turns
