"""A population whose labels are missing not at random (γ = 50), and what estimators of a risk make of it.

Five balanced classes on a line; a class keeps its label with probability 0.5 · 50^(−c/4). The classifier whose risk is
estimated has learnt the labelled class frequencies, so it does badly exactly where labels are rare. The true risk is
an integral, computed on a grid. `python -m tests.estimate.simulation` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cadr.estimate import aipw
from cadr.estimate.aipw import class_propensity

CLASSES, ROWS = 5, 20_000
CENTRES = 1.5 * np.arange(CLASSES)
PROPENSITY = 0.5 * 50.0 ** (-np.arange(CLASSES) / (CLASSES - 1))
NO_PROPENSITY = np.full(CLASSES, PROPENSITY.mean())  # wrong: as if labels were missing completely at random

Estimator = Callable[["Draw"], aipw.Risk]


def log_classifier(x):
    """(n, C) log f_c(x): the Bayes rule for the classes in the proportions in which they are labelled."""
    scores = -0.5 * (x[:, None] - CENTRES) ** 2 + np.log(PROPENSITY)
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


def posterior(x):
    """(n, C) P(y = c | x) where the classes overlap."""
    density = np.exp(-0.5 * (x[:, None] - CENTRES) ** 2)
    return density / density.sum(1, keepdims=True)


def nearest(x):
    """The label where x determines it: the nearest centre, except in thin stripes that no smooth rule gets right."""
    cell = np.abs(x[:, None] - CENTRES).argmin(1)
    return np.where(np.sin(40 * x) > 0.95, (cell + 1) % CLASSES, cell)


@dataclass(frozen=True)
class Draw:
    """One sample: everything an estimator may use, and the truth it may not."""

    x: np.ndarray
    y: np.ndarray
    losses: np.ndarray  # (n, C) the loss of every label
    missing: np.ndarray

    @property
    def observed(self):
        return torch.from_numpy(np.where(self.missing, np.nan, self.losses[np.arange(len(self.y)), self.y]))

    def risk(self, imputed, propensity):
        """AIPW; the propensity of a row whose label is missing is unknown, as it would be."""
        scores = np.where(self.missing, np.nan, propensity[self.y])
        return aipw.aipw(
            self.observed, torch.from_numpy(imputed), torch.from_numpy(self.missing), torch.from_numpy(scores)
        )


def draw(seed, *, overlapping):
    random = np.random.default_rng(seed)
    y = random.integers(0, CLASSES, ROWS)
    x = CENTRES[y] + random.standard_normal(ROWS)
    if not overlapping:
        y = nearest(x)
    missing = random.random(ROWS) >= PROPENSITY[y]
    return Draw(x, y, -log_classifier(x), missing)


def true_risk(*, overlapping):
    grid = np.linspace(CENTRES[0] - 9, CENTRES[-1] + 9, 400_001)
    density = np.exp(-0.5 * (grid[:, None] - CENTRES) ** 2).sum(1) / (CLASSES * np.sqrt(2 * np.pi))
    losses = -log_classifier(grid)
    labels = posterior(grid) if overlapping else np.eye(CLASSES)[nearest(grid)]
    return float(((labels * losses).sum(1) * density).sum() * (grid[1] - grid[0]))


@dataclass(frozen=True)
class Outcome:
    truth: float
    mean: float  # over the repeats
    error: float  # standard error of that mean
    coverage: float  # share of 95 % intervals that hold the truth


def repeat(estimators: dict[str, Estimator], *, overlapping, repeats, first_seed=0):
    """Every estimator on the same samples."""
    truth = true_risk(overlapping=overlapping)
    values: dict[str, list[float]] = {name: [] for name in estimators}
    hits = dict.fromkeys(estimators, 0)
    for seed in range(first_seed, first_seed + repeats):
        sample = draw(seed, overlapping=overlapping)
        for name, estimate in estimators.items():
            risk = estimate(sample)
            low, high = risk.interval()
            hits[name] += low <= truth <= high
            values[name].append(float(risk.value))
    return {
        name: Outcome(truth, float(np.mean(v)), float(np.std(v) / np.sqrt(repeats)), hits[name] / repeats)
        for name, v in values.items()
    }


def expected_loss(sample):
    return (posterior(sample.x) * sample.losses).sum(1)


def pseudo_label_loss(sample):
    return sample.losses.min(1)


def true_loss(sample):
    """Known without the label only because x determines it."""
    return sample.losses[np.arange(len(sample.x)), nearest(sample.x)]


def labelled_only(sample):
    observed = sample.observed[torch.from_numpy(~sample.missing)]
    return aipw.imputed(observed, observed, torch.zeros(len(observed)))


def estimated_propensity(sample):
    """From the labelled counts and the class marginal of all rows, which CAP's moving average stands for."""
    counts = np.bincount(sample.y[~sample.missing], minlength=CLASSES)
    prior = np.bincount(sample.y, minlength=CLASSES) / ROWS
    inside = torch.tensor(1.0)
    return class_propensity(torch.from_numpy(counts), torch.from_numpy(prior), torch.tensor(ROWS), inside).numpy()


OVERLAPPING: dict[str, Estimator] = {
    "labelled only": labelled_only,
    "right propensity, nothing imputed": lambda s: s.risk(np.zeros(ROWS), PROPENSITY),
    "right propensity, pseudo-labels imputed": lambda s: s.risk(pseudo_label_loss(s), PROPENSITY),
    "right propensity, E[loss | x] imputed": lambda s: s.risk(expected_loss(s), PROPENSITY),
    "estimated propensity, pseudo-labels imputed": lambda s: s.risk(pseudo_label_loss(s), estimated_propensity(s)),
    "wrong propensity, E[loss | x] imputed": lambda s: s.risk(expected_loss(s), NO_PROPENSITY),
}
DETERMINED: dict[str, Estimator] = {
    "labelled only": labelled_only,
    "wrong propensity, nothing imputed": lambda s: s.risk(np.zeros(ROWS), NO_PROPENSITY),
    "wrong propensity, true losses imputed": lambda s: s.risk(true_loss(s), NO_PROPENSITY),
}


def main():
    print(f"{'estimator':44} {'labels':16} {'true':>7} {'mean':>7} {'coverage':>9}")
    for kind, estimators in (("overlapping", OVERLAPPING), ("determined by x", DETERMINED)):
        for name, seen in repeat(estimators, overlapping=estimators is OVERLAPPING, repeats=400).items():
            print(f"{name:44} {kind:16} {seen.truth:7.3f} {seen.mean:7.3f} {seen.coverage:9.1%}")


if __name__ == "__main__":
    main()
