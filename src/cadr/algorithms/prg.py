"""PRG (Duan et al., "Towards Semi-supervised Learning with Non-random Missing Labels", ICCV 2023).

Pseudo-rectifying guidance: the model changes its mind about unlabelled examples, and the changes a → b of the last
batches, counted in H, say which classes are mistaken for which. A prediction p is replaced by p ∘ H[ĉ] / q̄, normalised,
where q̄ is the mean prediction: towards where its class is being left for, and away from classes predicted too often.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cadr.algorithms import store
from cadr.algorithms.base import Batch, Facts, State, Terms, check_range
from cadr.algorithms.imputation import Predictions, Thresholded
from cadr.functional import predictions
from cadr.utils.options import option

_SMALL = 1e-12  # under a division; far below the share of a class that anything is predicted to be

_MOST_BATCHES = 2**16  # each is kept, as a matrix of classes by classes


@dataclass(frozen=True)
class PRG(Thresholded):
    """Guided by the class that is predicted now."""

    alpha: float = option(1.0, "Weight α/(C − 1) of staying with a class.")
    batches: int = option(128, "Batches over which transitions and predictions are averaged (N_B).")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("alpha", self.alpha, 0.0, float("inf"))
        check_range("batches", self.batches, 1, _MOST_BATCHES)

    def init(self, facts: Facts) -> State:
        c = facts.num_classes
        rings = {"transitions": torch.zeros(self.batches, c, c), "means": torch.zeros(self.batches, c)}
        return {**super().init(facts), "last": store.classes(facts.num_unlabelled), **rings}

    def track(self, weak: Tensor, batch: Batch, state: State) -> State:
        """Count this batch's changes of class, in the place of the oldest batch's, and remember the classes."""
        predicted = predictions(weak)
        after, before, c = predicted.argmax(1), state["last"][batch.index], weak.shape[1]
        changed = (before != store.NOTHING) & (before != after)
        cells = torch.zeros(c * c, dtype=predicted.dtype, device=weak.device)
        counts = cells.index_add(0, before.clamp(min=0) * c + after, changed.to(predicted.dtype)).view(1, c, c)
        slot = (batch.step % self.batches).reshape(1)
        return {
            **state,
            "last": store.remember(state["last"], batch.index, after),
            "transitions": state["transitions"].index_copy(0, slot, counts),
            "means": state["means"].index_copy(0, slot, predicted.mean(0, keepdim=True)),
        }

    def guidance(self, state: State) -> Tensor:
        """(C, C) H′: row by row the changes from a class, and staying, over how often each class is predicted."""
        moves = state["transitions"].mean(0)
        c = moves.shape[0]
        staying = self.alpha / (c - 1) * torch.eye(c, dtype=moves.dtype, device=moves.device)
        rows = moves / moves.sum(1, keepdim=True).clamp(min=_SMALL) + staying
        return rows / state["means"].mean(0).clamp(min=_SMALL)

    def observe(self, weak: Tensor, batch: Batch, state: State) -> State:
        return self.track(weak, batch, super().observe(weak, batch, state))

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        predicted = predictions(weak)
        return self.rectify(predicted, predicted.argmax(1), state)

    def rectify(self, predicted: Tensor, classes: Tensor, state: State) -> Tensor:
        guided = predicted * self.guidance(state)[classes]
        return guided / guided.sum(1, keepdim=True).clamp(min=torch.finfo(guided.dtype).tiny)

    def terms(self, step: Predictions) -> Terms:
        return self.supervised(step) | self.unlabelled(step)


@dataclass(frozen=True)
class PRGLast(PRG):
    """Guided by the class that was predicted when the example was last seen, and by the batches before this one."""

    alpha: float = option(3.0, "Weight α/(C − 1) of staying with a class.")

    def observe(self, weak: Tensor, batch: Batch, state: State) -> State:
        return Thresholded.observe(self, weak, batch, state)

    def predict(self, weak: Tensor, batch: Batch, state: State) -> Tensor:
        predicted, last = predictions(weak), state["last"][batch.index]
        rectified = self.rectify(predicted, last.clamp(min=0), state)
        return torch.where((last != store.NOTHING).unsqueeze(1), rectified, predicted)

    def conclude(self, step: Predictions, state: State) -> State:
        return self.track(step.weak, step.batch, state)
