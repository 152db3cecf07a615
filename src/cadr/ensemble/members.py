"""A learner fitted to all labels, and its scores of labelled rows by fits that did not see their labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cadr.ensemble.discriminant import Discriminant
from cadr.ensemble.forest import Forest
from cadr.ensemble.imputation import ROUNDS, fit_imputed, fit_labels, log_softmax, neutral
from cadr.ensemble.learners import Fitted, Floats, Learner, Matrix, Rows
from cadr.ensemble.logistic import Logistic
from cadr.ensemble.module import ROWS
from cadr.ensemble.propagation import Graph, Propagation
from cadr.ensemble.representation import Representation

FOLDS = 5
FITTED_ROWS = 20_000  # unlabelled rows that learners are fitted with
FOREST_ROUNDS = 2
_SCORED_ROWS = 2048  # of a graph, at once

IMPUTED: dict[str, tuple[Learner, int]] = {  # with the rounds of imputation
    "imputed_logistic": (Logistic(), ROUNDS),
    "discriminant": (Discriminant(), ROUNDS),
    "forest": (Forest(), FOREST_ROUNDS),
}
MEMBERS = ("logistic", "propagation", *IMPUTED)


@dataclass(frozen=True, eq=False)
class Member:
    """All scores are log-likelihoods of the classes, up to a number for each row."""

    name: str  # learner@representation
    held_out: Floats  # (labelled, C), cross-fitted
    scores: Floats  # (n, C) of all rows
    shift: Floats  # (C,) what was taken from the module's scores: logarithms of the class shares it was fitted at
    module: Callable[[], nn.Module]
    fitted: Fitted | None = None  # None of a graph


@dataclass(frozen=True, eq=False)
class Problem:
    """Standardised rows, their labels, and what learners see of them."""

    labels: Rows  # (n,), −1 where missing
    num_classes: int
    views: Mapping[str, Representation]
    seen: Mapping[str, Matrix]  # by view, and the rows themselves
    known: Rows  # labelled rows
    rest: Rows  # unlabelled rows that learners are fitted with
    fold: Rows  # of labelled rows; −1: always in training, as the only one of its class
    weights: Floats | None = None  # (n,) for how many rows each one counts

    @staticmethod
    def of(
        x: Matrix,
        labels: Rows,
        num_classes: int,
        views: Mapping[str, Representation],
        random: np.random.Generator,
        weights: Floats | None = None,
    ) -> Problem:
        known, rest = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        if len(rest) > FITTED_ROWS:
            rest = np.sort(random.choice(rest, FITTED_ROWS, replace=False))
        seen = {name: view(x) for name, view in views.items()} | {ROWS: x}
        fold = _folds(labels[known], num_classes, random)
        return Problem(labels, num_classes, views, seen, known, rest, fold, weights)

    @property
    def known_labels(self) -> Rows:
        return self.labels[self.known]

    @property
    def counts(self) -> Floats:
        weights = self.weights_of(self.known)
        return np.bincount(self.known_labels, weights, minlength=self.num_classes).astype(np.float64)

    def weights_of(self, rows: NDArray[Any]) -> Floats | None:
        return None if self.weights is None else self.weights[rows]

    @property
    def num_unlabelled(self) -> float:
        """Rows without a label, as often as their weights say."""
        return float((self.labels < 0).sum()) if self.weights is None else float(self.weights[self.labels < 0].sum())

    def shares_of_all(self, of_unlabelled: Floats) -> Floats:
        """The class shares of all rows where those without a label have these."""
        missing, counts = self.num_unlabelled, self.counts
        return np.asarray((of_unlabelled * missing + counts) / (missing + counts.sum()))

    def views_for(self, name: str) -> tuple[str, ...]:
        """Trees split the columns that are there."""
        return (ROWS,) if name == "forest" else tuple(self.views)

    def logistic(self, view: str) -> Member:
        x, learner = self.seen[view], Logistic()

        def fit(rows: Rows) -> Fitted:
            return fit_labels(learner, x[rows], self.labels[rows], self.num_classes, self.weights_of(rows))

        return self.member(f"logistic@{view}", learner, fit)

    def imputed(self, name: str, view: str, shares: Floats) -> Member:
        """`shares` (C,) are the classes' of all rows."""
        return self.imputed_by(f"{name}@{view}", *IMPUTED[name], shares)

    def imputed_by(self, name: str, learner: Learner, rounds: int, shares: Floats) -> Member:
        x = self.seen[name.partition("@")[2]]

        def fit(rows: Rows) -> Fitted:
            hidden = np.setdiff1d(self.known, rows)  # labels that are imputed as those of all others are
            others = np.concatenate([self.rest, hidden])
            weights = self.weights_of(rows), self.weights_of(others)
            return fit_imputed(learner, x[rows], self.labels[rows], x[others], shares, rounds, *weights)

        return self.member(name, learner, fit, shares)

    def member(
        self, name: str, learner: Learner, fit: Callable[[Rows], Fitted], shares: Floats | None = None
    ) -> Member:
        """From a way to fit given labelled rows; `shares` are what it was fitted at, if not at equal ones."""
        x, fitted = self.seen[name.partition("@")[2]], fit(self.known)
        held_out = np.empty((len(self.known), self.num_classes))
        for k in np.unique(self.fold):
            out = self.fold == k
            one = fitted if k < 0 else fit(self.known[~out])
            held_out[out] = neutral(learner, one, x[self.known[out]], shares)
        shift = np.zeros(self.num_classes) if shares is None or learner.density else np.log(shares)
        return Member(name, held_out, neutral(learner, fitted, x, shares), shift, fitted.module, fitted)

    def propagation(self, view: str) -> Member:
        """All rows are in the graph, up to a number; one beyond takes what its neighbours have."""
        learner, rows = Propagation(), np.sort(np.concatenate([self.known, self.rest]))
        graph = Graph.of(self.seen[view][rows], learner.neighbours)
        place, labels = np.searchsorted(rows, self.known), self.labels[rows]
        weights = self.weights_of(rows)
        spread = learner.spread(graph, labels, self.num_classes, weights)
        held_out = spread[place].copy()
        for k in range(FOLDS):
            out = place[self.fold == k]
            if len(out):
                kept = labels.copy()
                kept[out] = -1
                held_out[self.fold == k] = learner.spread(graph, kept, self.num_classes, weights)[out]

        def module() -> nn.Module:
            return learner.module(graph, spread)

        scores = spread
        if len(rows) < len(self.labels):
            program = module()
            with torch.inference_mode():
                parts = torch.split(torch.from_numpy(self.seen[view]), _SCORED_ROWS)
                scores = torch.cat([program(part) for part in parts]).double().numpy()
        return Member(
            f"propagation@{view}", log_softmax(held_out), log_softmax(scores), np.zeros(self.num_classes), module
        )


def _folds(labels: Rows, num_classes: int, random: np.random.Generator) -> Rows:
    """The rows of a class are dealt out in turn."""
    order = np.lexsort((random.random(len(labels)), labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % FOLDS
    fold[np.bincount(labels, minlength=num_classes)[labels] == 1] = -1
    return fold
