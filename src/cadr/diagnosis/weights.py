"""Weights that undo the bias of the labels, for analyses of other programs: every row's probability of being labelled.

A labelled row of class c stands for 1/φ_c rows like it, where φ_c = P(labelled | c) as the diagnosis estimates it. How
far that estimate can be trusted is in replicate weights: each replicate gives every row a random weight (the Bayesian
bootstrap), fits classifiers and class shares anew, and has propensities of its own. Whatever is computed once
with the weights is computed with each replicate, too, and varies by its standard error.
"""

from __future__ import annotations

import copy
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import Pool
from cadr.diagnosis.checks import effective_size
from cadr.diagnosis.cross_fit import CrossFit, cross_fit
from cadr.diagnosis.diagnose import PACKAGES, REPEATED_LABELS, REPEATS, SCORES, parts_of, unlabelled_shares
from cadr.diagnosis.features import Features, fit_features
from cadr.diagnosis.result import ESTIMABLE, TRIM
from cadr.errors import ConfigError, DataError
from cadr.estimate.label_shift import class_shares, with_prior
from cadr.utils.files import atomic_write
from cadr.utils.optional_imports import optional_import
from cadr.utils.progress import counted

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


_LEAST_SHAPE, _LEAST_WEIGHT = 1 / 3, 1e-9  # of three labels; of what a row counts in a replicate


class Estimate(NamedTuple):
    value: float
    standard_error: float
    replicates: int  # that the standard error is from

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's confidence interval, with one degree of freedom less than there are replicates."""
        student = optional_import("scipy.stats", "an interval").t
        half = float(student.ppf((1.0 + confidence) / 2.0, self.replicates - 1)) * self.standard_error
        return self.value - half, self.value + half


@dataclass(frozen=True, eq=False)
class Replicates:
    """B draws: a weight of every row, and the propensities that follow."""

    rows: Floats  # (B, n)
    propensity: Floats  # (B, C)


@dataclass(frozen=True, eq=False)
class RowWeights:
    """By row of the pool; NaN where nothing can be said, as of a class with a single label, or rows of no part.

    Weights that rows had before, as those of a survey, are in all of it but the propensities themselves.
    """

    pool: Pool
    labelled: NDArray[np.bool_]  # (n,)
    class_propensity: Floats  # (C,)
    given_x: Floats  # (n,) the probability of being labelled of a row like this, whatever its class
    trim: float
    replicates: Replicates

    @property
    def propensity(self) -> Floats:
        """(n,) of labelled rows that of their class, of others what their features say."""
        return np.where(self.labelled, self.class_propensity[self.pool.labels], self.given_x)

    @property
    def weight(self) -> Floats:
        """(n,) 1/φ of labelled rows: how many rows each stands for. NaN for others."""
        before = 1.0 if self.pool.weights is None else self.pool.weights
        return np.where(self.labelled, before / self.class_propensity[self.pool.labels], np.nan)

    @property
    def stabilised(self) -> Floats:
        """The same with a mean of one."""
        return self.weight / np.nanmean(self.weight)

    @property
    def trimmed(self) -> Floats:
        """Stabilised weights, of which those above `trim` are cut: a little bias for a good deal less variance."""
        cut = np.minimum(self.stabilised, self.trim)
        return np.asarray(cut / np.nanmean(cut))

    @staticmethod
    def effective(weights: Floats) -> float:
        """How many equally weighted labels would be as informative."""
        return effective_size(weights[~np.isnan(weights)])

    def mean(self, values: Floats, imputed: Floats | None = None) -> Estimate:
        """The mean over all rows of something known of the labelled ones alone, by AIPW; without `imputed` by IPW.

        `imputed` (n,) is what a model says of every row. It need not be right: its error is seen on the labelled rows,
        and their weights correct the mean for it; the better it is, the smaller the standard error.
        """
        if not len(self.replicates.rows):
            raise ConfigError("an estimate with a standard error needs replicates: row_weights(pool, replicates=200)")
        known = self.labelled & ~np.isnan(self.weight)
        imputed = np.zeros(len(known)) if imputed is None else np.asarray(imputed, dtype=np.float64)
        values = np.where(known, np.asarray(values, dtype=np.float64), 0.0)
        inside = ~np.isnan(self.given_x)
        if not np.isfinite(values).all() or not np.isfinite(imputed[inside]).all():
            raise DataError("values of labelled rows and imputed values of all rows should be finite numbers")
        classes = self.pool.labels[known]

        def estimate(rows: Floats, propensity: Floats) -> float:
            error = (values - imputed)[known] / propensity[classes]
            return float((rows[inside] @ imputed[inside] + rows[known] @ error) / rows[inside].sum())

        draws = map(estimate, self.replicates.rows, self.replicates.propensity)
        each = np.ones(len(known)) if self.pool.weights is None else self.pool.weights
        value = estimate(each, self.class_propensity)
        return Estimate(value, float(np.std(list(draws), ddof=1)), len(self.replicates.rows))


def row_weights(pool: Pool, *, seed: int = 0, trim: float = TRIM, replicates: int = 0) -> RowWeights:
    """Propensities and weights of all rows. The same seed gives the same; a replicate costs as much as a cross-fit."""
    if not trim >= 1.0:
        raise ConfigError(f"trim must be at least 1, the mean weight, got {trim}")
    if replicates < 0 or replicates == 1:
        raise ConfigError(f"replicates must be 0 or at least 2, got {replicates}")
    labelled, without = parts_of(pool)
    _, threads = (optional_import(name, "weights") for name in PACKAGES)
    few = len(labelled) <= REPEATED_LABELS
    with threads.threadpool_limits(1 if few else None):
        return _row_weights(pool, labelled, without, seed, trim, replicates, REPEATS if few else 1)


def _row_weights(
    pool: Pool, labelled: Rows, without: Rows, seed: int, trim: float, replicates: int, repeats: int
) -> RowWeights:
    present, labels, several = np.unique(pool.labels[labelled], return_inverse=True, return_counts=True)
    if len(pool.labels) * len(present) > SCORES:
        raise DataError(
            f"{pool.name}: {len(pool.labels):,} rows of {len(present)} classes are more than can be weighted at once; "
            "take a part of the unlabelled rows"
        )
    random = np.random.default_rng(seed)  # as a diagnosis with this seed draws, so that its propensities are the same
    features = fit_features(pool, np.sort(np.concatenate([labelled, without])), random)
    parts = (features, labelled, labels, without)
    folds, fits = [], []
    for _ in range(repeats):
        folds.append(copy.deepcopy(random))
        fits.append(cross_fit(*parts, random, weights=_weights_of(pool, labelled)))
    share = unlabelled_shares(fits, labels, _weights_of(pool, labelled), _weights_of(pool, without)).share
    counts = np.bincount(labels, _weights_of(pool, labelled))
    rows = counts + pool.total(without) * share
    given_x = np.full(len(pool.labels), np.nan)
    for where, probabilities in ((labelled, _of_labelled(fits)), (without, _of_unlabelled(fits))):
        population = with_prior(probabilities, counts / counts.sum(), rows / rows.sum())
        given_x[where] = population @ (counts / rows)
    estimable = several >= ESTIMABLE
    propensity = np.full(pool.num_classes, np.nan)
    propensity[present[estimable]] = (counts / rows)[estimable]
    is_labelled = np.zeros(len(pool.labels), dtype=np.bool_)
    is_labelled[labelled] = True
    drawn = _replicates(pool, parts, present, folds, replicates, random)
    drawn.propensity[:, np.isnan(propensity)] = np.nan
    return RowWeights(pool, is_labelled, propensity, given_x, trim, drawn)


def _weights_of(pool: Pool, rows: Rows) -> Floats | None:
    return None if pool.weights is None else np.asarray(pool.weights[rows])


def _of_labelled(fits: Iterable[CrossFit]) -> Floats:
    return np.asarray(np.mean([fit.labelled for fit in fits], axis=0))


def _of_unlabelled(fits: Iterable[CrossFit]) -> Floats:
    return np.asarray(np.mean([fit.unlabelled for fit in fits], axis=0))


def _replicates(
    pool: Pool,
    parts: tuple[Features, Rows, Rows, Rows],
    present: Rows,
    folds: list[np.random.Generator],
    number: int,
    random: np.random.Generator,
) -> Replicates:
    """Each with the folds of one of the cross-fits, so that it differs from that by its weights alone."""
    _, labelled, labels, without = parts
    rows = _drawn(pool, labelled, np.bincount(labels)[labels], number, random)
    propensity = np.full((number, pool.num_classes), np.nan)
    for b in counted(range(number), number, "replicates"):
        here, there = rows[b, labelled], rows[b, without]
        fit = cross_fit(*parts, copy.deepcopy(folds[b % len(folds)]), weights=here)
        kept = fit.trained_on
        share = class_shares(fit.labelled[kept], labels[kept], fit.unlabelled, here[kept], there).share
        weight = np.bincount(labels, here)
        propensity[b, present] = weight / (weight + there.sum() * share)
    return Replicates(rows, propensity)


def _drawn(pool: Pool, labelled: Rows, alike: Rows, number: int, random: np.random.Generator) -> Floats:
    """(number, n) random weights of the rows, 1 in the mean, or what they weigh; `alike` labels are of a row's class.

    With exponential weights the mean of k rows varies by s²/(k + 1), where s² divides by k: too little, if k is small.
    With gamma variables of shape (k − 2)/k it varies by s²/(k − 1), which is unbiased.
    """
    shape = np.ones(len(pool.labels))
    shape[labelled] = np.maximum((alike - 2) / alike, _LEAST_SHAPE)
    weights = np.ones(len(shape)) if pool.weights is None else pool.weights
    drawn = random.standard_gamma(shape * weights, (number, len(shape))) / shape
    return np.maximum(drawn, _LEAST_WEIGHT)


CLASSES = ".classes.csv"  # what the name of the classes' file ends in


def classes_file(path: Path) -> Path:
    return path.with_name(path.stem + CLASSES)


def write_weights(path: Path, weights: RowWeights) -> list[Path]:
    """Write both files; returns them. What nothing can be said of is blank."""
    if path.suffix.lower() != ".csv":
        raise ConfigError(f"{path}: weights are written to a file that ends in .csv")
    pool, drawn = weights.pool, weights.replicates
    names = pool.identifiers
    called = ["row"] if names is None else ["row", "file" if pool.kind == "image" else "id"]
    numbered = [f"replicate_{b + 1}" for b in range(len(drawn.rows))]
    header = [*called, "label", "propensity", "given_x", "weight", "stabilised", "trimmed", *numbered]
    labels = np.where(weights.labelled, pool.labels, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        inverse = np.where(weights.labelled, 1.0 / drawn.propensity[:, pool.labels], 1.0)
        columns = (weights.propensity, weights.given_x, weights.weight, weights.stabilised, weights.trimmed)
        numbers = np.column_stack([*columns, *(drawn.rows * inverse)])

    def rows() -> Iterable[list[str]]:
        for row, (label, cells) in enumerate(zip(labels, numbers, strict=True)):
            key = [str(row)] if names is None else [str(row), names[row]]
            yield [*key, pool.class_names[label] if label >= 0 else "", *map(_written, cells)]

    _write(path, header, rows())
    beside = classes_file(path)
    counts = np.bincount(labels[labels >= 0], minlength=pool.num_classes)
    by_class = zip(pool.class_names, counts.tolist(), weights.class_propensity, drawn.propensity.T, strict=True)
    lines = ([name, str(count), *map(_written, (own, *draws))] for name, count, own, draws in by_class)
    _write(beside, ["class", "labels", "propensity", *numbered], lines)
    return [path, beside]


def words(weights: RowWeights) -> list[str]:
    """How much the weights leave of the labels, and of which rows nothing can be said."""
    labels = int(weights.labelled.sum())
    effective = [RowWeights.effective(w) for w in (weights.weight, weights.trimmed)]
    trimmed = int((weights.stabilised > weights.trim).sum())
    said = [f"The {labels:,} labels, weighted, are worth {effective[0]:,.0f} equally weighted ones."]
    if trimmed:
        said.append(
            f"With {trimmed:,} weights cut at {weights.trim:g} times the mean they are worth {effective[1]:,.0f}."
        )
    unknown = [
        name
        for name, phi, count in zip(
            weights.pool.class_names, weights.class_propensity, weights.pool.counts, strict=True
        )
        if np.isnan(phi) and count
    ]
    if unknown:
        said.append(f"With one label a class has no propensity, and its row no weight: {', '.join(unknown)}.")
    return said


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with atomic_write(path) as new, new.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _written(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.8g}"
