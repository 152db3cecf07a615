"""SimCLR's loss (Chen et al., 2020): two strong views of an example are each other's like, all others are not.

It knows no classes: `training/phases/pretraining.py` takes the features that come of it, and no run learns by it alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from cadr.algorithms.base import Algorithm, Batch, Facts, Model, Output, State, forward
from cadr.estimate.prior import uniform_prior

WIDTH = 128  # outputs in which examples are compared


@dataclass(frozen=True)
class SimCLR(Algorithm):
    """Cross-entropy of finding an example's other view among all views of the batch, by the cosine."""

    temperature: float = 0.5

    strong_views = 2
    auxiliary = WIDTH
    selects = False

    def init(self, facts: Facts) -> State:
        return {"prior": uniform_prior(facts.num_classes)}

    def loss(self, model: Model, batch: Batch, state: State) -> Output:
        (outputs,) = forward(model, batch.strong)
        prior, shown = state["prior"], len(batch.index)
        terms = {"contrast": contrast(outputs[:, len(prior) :], self.temperature)}
        nothing = torch.zeros(shown, dtype=torch.int64, device=outputs.device)
        return Output(terms, state, nothing, nothing.float(), torch.zeros_like(prior), prior)


def contrast(projected: Tensor, temperature: float) -> Tensor:
    """NT-Xent of (2n, d), the second views after the first ones in the same order."""
    views = F.normalize(projected, dim=1)
    alike = views @ views.T / temperature
    places = torch.arange(len(views), device=views.device)
    alike = alike.masked_fill(places[:, None] == places, -torch.inf)
    return F.cross_entropy(alike, places.roll(len(views) // 2))
