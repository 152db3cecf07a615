"""Fits the ensemble: simple learners, class shares by their stack, learners that impute in these, and a last stack."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from cadr.ensemble.imputation import ROUNDS, log_softmax, shares_of_unlabelled
from cadr.ensemble.learners import Floats, Learner, Matrix, Rows
from cadr.ensemble.members import FOLDS, IMPUTED, MEMBERS, Member, Problem
from cadr.ensemble.module import ROWS, EnsembleModule
from cadr.ensemble.representation import MANY, Representation, representations
from cadr.ensemble.shares import offsets_for_shares, shrunk, softmax
from cadr.ensemble.stack import DRAWS, Weights, draw_shares, draw_weights, mean_probabilities

FOREST_CLASSES = 20  # more make leaves too large to keep
UNIFORM = 0.3  # of the shares that labels are imputed in: a first estimate may miss a class

Done = tuple[str, float]  # what has been fitted, and the share of the work that is done
Fitting = Generator[Done, None, "FittedEnsemble"]


@dataclass(frozen=True, eq=False)
class FittedEnsemble:
    """What the fit came to."""

    members: tuple[Member, ...]
    draws: tuple[Weights, ...]
    tilt: Floats  # (C,) added to the logarithms of the draws' mean probabilities
    shares: Floats  # (C,) of the unlabelled rows
    deviations: Floats  # (C,) standard deviations of these shares
    held_out: Floats  # (labelled, C) probabilities of labelled rows, by members and stacks that saw other labels
    logistic_held_out: Floats  # the same of logistic regression alone, to compare with
    views: Mapping[str, Representation]

    def probabilities(self) -> Floats:
        """(n, C) of all rows that it was fitted to."""
        return self._tilted(np.stack([member.scores for member in self.members]))

    def predict(self, x: Matrix) -> Floats:
        """(n, C) of standardised rows, by the learners themselves; every member must be one."""
        found = []
        for member in self.members:
            assert member.fitted is not None
            view = member.name.partition("@")[2]
            seen = x if view == ROWS else self.views[view](x)
            found.append(log_softmax(member.fitted.scores(seen) - member.shift))
        return self._tilted(np.stack(found))

    def weights(self) -> dict[str, float]:
        """How much each member counts: its share of what the scores of labelled rows differ by, class by class."""
        sizes = [(m.held_out - m.held_out.mean(1, keepdims=True)).std() for m in self.members]
        mean = np.mean([one.learners for one in self.draws], axis=0) * sizes
        return {member.name: float(w) for member, w in zip(self.members, mean / mean.sum(), strict=True)}

    def module(self) -> EnsembleModule:
        used = {member.name.partition("@")[2] for member in self.members}
        return EnsembleModule(
            {name: view.module() for name, view in self.views.items() if name in used},
            {member.name: member.module() for member in self.members},
            torch.tensor(np.stack([member.shift for member in self.members])),
            torch.tensor(np.stack([one.learners for one in self.draws])),
            torch.tensor(np.stack([one.offsets for one in self.draws])),
            torch.tensor(self.tilt),
        )

    def _tilted(self, scores: Floats) -> Floats:
        return softmax(np.log(mean_probabilities(self.draws, scores)) + self.tilt)


def fit_ensemble(
    x: Matrix,
    labels: Rows,
    scale: Floats,
    num_classes: int,
    seed: int,
    members: Sequence[str] = (),
    shares: Floats | None = None,
    estimator: Learner | None = None,
    progress: Callable[[str, float], None] = lambda what, share: None,
    weights: Floats | None = None,
) -> FittedEnsemble:
    """As `fitting`; `progress` hears what has been fitted, and the share of the work that is done."""
    work = fitting(x, labels, scale, num_classes, seed, members, shares, estimator, weights)
    while True:
        try:
            progress(*next(work))
        except StopIteration as end:
            found: FittedEnsemble = end.value
            return found


def fitting(
    x: Matrix,
    labels: Rows,
    scale: Floats,
    num_classes: int,
    seed: int,
    members: Sequence[str] = (),
    shares: Floats | None = None,
    estimator: Learner | None = None,
    weights: Floats | None = None,
) -> Fitting:
    """From standardised rows (n, d), their labels with −1 where missing, and what the columns were divided by.

    `members` are learners by name; without, all that suit the data. `shares` (C,) of all rows are estimated unless
    given. An `estimator` takes the place of the members. `weights` (n,) are for how many rows each one counts.
    """
    random = np.random.default_rng(seed)
    views = representations(x, scale, random, weights)
    problem = Problem.of(x, labels, num_classes, views, random, weights)
    chosen = () if estimator is not None else tuple(members) or _suitable(x.shape[1], num_classes)
    pieces = sum(len(problem.views_for(name)) for name in {*chosen, "logistic", "propagation"})
    done = _Counter(pieces + (estimator is not None))

    first = yield from done.each("logistic regression", problem.views, problem.logistic)
    reference = len(first)
    first += yield from done.each("label propagation", problem.views, problem.propagation)
    guess = shares
    if guess is None:
        guess = (1.0 - UNIFORM) * problem.shares_of_all(
            _Stack.of(first, problem, random).shares
        ) + UNIFORM / num_classes
    found = [member for member in first if member.name.partition("@")[0] in chosen]
    for name in (name for name in IMPUTED if name in chosen):
        make = partial(problem.imputed, name, shares=guess)
        found += yield from done.each(name.replace("_", " "), problem.views_for(name), make)
    if estimator is not None:
        own = partial(problem.imputed_by, f"estimator@{ROWS}", estimator, ROUNDS, guess)
        found += yield from done.each("estimator", [ROWS], lambda view: own())
    stack = _Stack.of(found, problem, random)
    if shares is not None:
        of_known = problem.weights_of(problem.known)
        left = shares_of_unlabelled(shares, problem.known_labels, problem.num_unlabelled, of_known)
        stack = replace(stack, shares=left)
    elif estimator is not None:  # which may tell the classes apart and yet be no measure of how many rows they have
        all_of_them = _Stack.of(first + found, problem, random)
        stack = replace(stack, shares=all_of_them.shares, deviations=all_of_them.deviations)
    return FittedEnsemble(
        members=tuple(found),
        draws=tuple(stack.draws),
        tilt=stack.tilt(found, problem),
        shares=stack.shares,
        deviations=stack.deviations,
        held_out=_held_out(found, problem, stack.shares, random),
        logistic_held_out=_held_out(first[:reference], problem, stack.shares, random),
        views=problem.views,
    )


def _suitable(columns: int, num_classes: int) -> tuple[str, ...]:
    """Trees split single columns, which tell little in an embedding."""
    trees = columns < MANY and num_classes <= FOREST_CLASSES
    return MEMBERS if trees else tuple(name for name in MEMBERS if name != "forest")


@dataclass(frozen=True, eq=False)
class _Stack:
    draws: list[Weights]
    shares: Floats  # (C,) of the unlabelled rows
    deviations: Floats

    @staticmethod
    def of(members: Sequence[Member], problem: Problem, random: np.random.Generator) -> _Stack:
        of_known, of_rest = problem.weights_of(problem.known), problem.weights_of(problem.labels < 0)
        draws = draw_weights(_held_out_scores(members), problem.known_labels, random, rows=of_known)
        rest = _unlabelled(members, problem)
        if rest.shape[1] == 0:
            uniform = np.full(problem.num_classes, 1.0 / problem.num_classes)
            return _Stack(draws, uniform, np.zeros(problem.num_classes))
        estimates = draw_shares(draws, rest, random, of_rest)
        return _Stack(draws, shrunk(estimates, problem.counts)[0], estimates.std(0))

    def tilt(self, members: Sequence[Member], problem: Problem) -> Floats:
        """What gives the probabilities of the unlabelled rows these shares."""
        rest = _unlabelled(members, problem)
        if rest.shape[1] == 0:
            return np.zeros(problem.num_classes)
        weights = problem.weights_of(problem.labels < 0)
        return offsets_for_shares(np.log(mean_probabilities(self.draws, rest)), self.shares, weights)


def _held_out(members: Sequence[Member], problem: Problem, shares: Floats, random: np.random.Generator) -> Floats:
    """Probabilities of labelled rows, each fold's by stacks of the other folds' labels, in the shares of all rows."""
    scores, labels = _held_out_scores(members), problem.known_labels
    found = np.empty(scores.shape[1:])
    rest, weights = _unlabelled(members, problem), problem.weights_of(problem.known)
    for k in range(-1, FOLDS):
        out = problem.fold == k
        if not out.any():
            continue
        kept = ~out if k >= 0 else np.ones_like(out)
        rows = None if weights is None else weights[kept]
        stack = _Stack(draw_weights(scores[:, kept], labels[kept], random, DRAWS // FOLDS, rows), shares, shares)
        tilt = stack.tilt(members, problem) if rest.shape[1] else 0.0
        found[out] = softmax(np.log(mean_probabilities(stack.draws, scores[:, out])) + tilt)
    return found


def _held_out_scores(members: Sequence[Member]) -> Floats:
    return np.stack([member.held_out for member in members])


def _unlabelled(members: Sequence[Member], problem: Problem) -> Floats:
    """(M, rows, C) scores of all rows without a label."""
    return np.stack([member.scores[problem.labels < 0] for member in members])


class _Counter:
    """Counts what has been done."""

    def __init__(self, pieces: int) -> None:
        self.pieces, self.done = pieces, 0

    def each(
        self, name: str, views: Iterable[str], make: Callable[[str], Member]
    ) -> Generator[Done, None, list[Member]]:
        found = []
        for view in views:
            found.append(make(view))
            self.done += 1
            yield name, self.done / self.pieces
        return found
