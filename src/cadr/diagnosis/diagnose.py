"""How biased are the labels? Shares of the classes among unlabelled rows, propensities, a test and checks of it all.

Assumes that P(x | class) is the same for labelled and unlabelled rows, which is to say that whether a row is labelled
depends on its class only, and checks that. No deep network is trained: a cross-fitted logistic regression does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import MISSING, Pool, is_mapped, unlabelled
from cadr.diagnosis.checks import Check, class_weights, distance_check, domain_check
from cadr.diagnosis.cross_fit import CrossFit, cross_fit
from cadr.diagnosis.features import Features, fit_features
from cadr.diagnosis.modes import FEWEST, clearly_better, with_centres
from cadr.diagnosis.result import ESTIMABLE, ClassDiagnosis, Diagnosis, flag_of
from cadr.errors import DataError
from cadr.estimate.hotelling import Permutation, hotelling_test
from cadr.estimate.label_shift import Shares, bootstrap_shares, class_shares, interval, standard_deviation
from cadr.utils.optional_imports import optional_import

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

PACKAGES = ("sklearn.linear_model", "threadpoolctl")  # that training does without
REPEATS = 4  # cross-fits with folds of their own: with few labels it matters which of them fall into one fold
REPEATED_LABELS = 5_000  # with more labels one cross-fit is enough
DRAWS = 40
PERMUTATIONS = 1999
SCORES = 50_000_000  # probabilities kept in memory; with more rows times classes, a sample of the rows is scored
BOOTSTRAP_ROWS = 100_000
TEST_ROWS = 100_000
CHECK_ROWS = 10_000  # of labelled and of unlabelled rows, in the checks of the assumptions


def diagnose(pool: Pool, *, seed: int = 0) -> Diagnosis:
    """What the labelled rows of a pool say about the unlabelled ones (its stream, where it has one).

    The same seed gives the same diagnosis: it decides the folds, the bootstrap and the permutations. Shares and
    propensities count rows by their weights; the test and the checks look at every row once.
    """
    labelled, unlabelled = parts_of(pool)
    if is_mapped(pool.examples):
        pool.check_finite()
    _, threads = (
        optional_import(name, "a diagnosis") for name in PACKAGES
    )  # the first loads the libraries that have some

    few = len(labelled) <= REPEATED_LABELS
    with threads.threadpool_limits(1 if few else None):  # on matrices this small they mostly wait for each other
        return _diagnose(pool, labelled, unlabelled, REPEATS if few else 1, seed)


def _diagnose(pool: Pool, labelled: Rows, unlabelled: Rows, repeats: int, seed: int) -> Diagnosis:
    random = np.random.default_rng(seed)
    most = SCORES // (2 * int(np.count_nonzero(pool.counts)) * repeats)
    some_labelled, some_unlabelled = _sample(labelled, most, random), _sample(unlabelled, most, random)
    # A sample of the labels, where it is one, may lack rare classes: nothing is estimated of them then.
    present, labels, counts = np.unique(pool.labels[some_labelled], return_inverse=True, return_counts=True)
    features = fit_features(pool, np.sort(np.concatenate([labelled, unlabelled])), random)
    w, others = (None if pool.weights is None else pool.weights[rows] for rows in (some_labelled, some_unlabelled))
    fits = [cross_fit(features, some_labelled, labels, some_unlabelled, random, weights=w) for _ in range(repeats)]
    seen = _bent(features, fits[0], some_labelled, labels, some_unlabelled, w, seed)
    if seen is not features:
        fits = [cross_fit(seen, some_labelled, labels, some_unlabelled, random, weights=w) for _ in range(repeats)]

    shares = unlabelled_shares(fits, labels, w, others)
    bounds = intervals(shares, fits, labels, random, w, others)
    tested = fits[0]
    if (counts == 1).any():
        tested = cross_fit(seen, some_labelled, labels, some_unlabelled, random, hold_out_single=True)
    test = missing_at_random(tested, random)
    domain, distance = _checks(features, seen, some_labelled, labels, some_unlabelled, shares.share, random)
    right = np.mean([fit.labelled.argmax(1) == labels for fit in fits], axis=0)
    recall = np.bincount(labels, right if w is None else right * w) / np.bincount(labels, w)
    several = counts >= ESTIMABLE  # a single label was trained on
    estimated = (shares.share[several], bounds[several], recall[several])
    return Diagnosis(
        name=pool.name,
        labelled=len(labelled),
        unlabelled=len(unlabelled),
        classes=_classes(pool, present[several], *estimated, pool.total(labelled), pool.total(unlabelled)),
        statistic=test.statistic,
        p_value=test.p_value,
        balanced_accuracy=float(recall[several].mean()),
        domain_auc=domain.value,
        domain_limit=domain.limit,
        far_share=distance.value,
        far_limit=distance.limit,
        seed=seed,
        bent=seen is not features,
    )


def _bent(
    features: Features, straight: CrossFit, labelled: Rows, labels: Rows, unlabelled: Rows, w: Floats | None, seed: int
) -> Features:
    """The features with centres beside them, where the labels ask for these; otherwise as they are.

    Draws are its own, so that a diagnosis without them is the same as if nobody had looked.
    """
    if len(labelled) < FEWEST:
        return features
    random = np.random.default_rng([seed, 1])
    wider = with_centres(features, np.sort(np.concatenate([labelled, unlabelled])), int(labels.max()) + 1, random)
    some = unlabelled[:0]  # whose scores nobody needs yet
    bent = cross_fit(wider, labelled, labels, some, random, weights=w, folds=straight.fold_labelled)
    return wider if clearly_better(bent, straight, labels) else features


def parts_of(pool: Pool) -> tuple[Rows, Rows]:
    """Rows with a label, and rows of the stream without one."""
    labelled, without = np.flatnonzero(pool.labels != MISSING), unlabelled(pool)
    if len(labelled) == 0:
        raise DataError(f"{pool.name}: every label is missing; label some rows of each class first")
    if len(without) == 0:
        raise DataError(
            f"{pool.name}: no label is missing, so there is nothing to diagnose; "
            "expected rows whose label is blank or −1 (a benchmark needs --split)"
        )
    if len(without) == 1:
        raise DataError(f"{pool.name}: a single label is missing, and one row says nothing of how labels go missing")
    used = np.flatnonzero(pool.counts)
    if len(used) < 2:
        raise DataError(
            f"{pool.name}: all {len(labelled):,} labels are of class {pool.class_names[used[0]]!r}; "
            "label rows of at least two classes"
        )
    if len(labelled) == len(used):
        raise DataError(
            f"{pool.name}: no class has more than one label, which is too few to check a classifier on; label more rows"
        )
    return labelled, without


def _sample(rows: Rows, limit: int, random: np.random.Generator) -> Rows:
    return rows if len(rows) <= limit else np.sort(random.choice(rows, limit, replace=False))


def unlabelled_shares(
    fits: Sequence[CrossFit], labels: Rows, weights: Floats | None = None, others: Floats | None = None
) -> Shares:
    """Both estimates of q, each the mean over the cross-fits."""
    each = [
        class_shares(
            fit.labelled[fit.trained_on],
            labels[fit.trained_on],
            fit.unlabelled,
            None if weights is None else weights[fit.trained_on],
            others,
        )
        for fit in fits
    ]
    return Shares(np.mean([s.raw for s in each], axis=0), np.mean([s.recalibrated for s in each], axis=0))


def intervals(
    shares: Shares,
    fits: Sequence[CrossFit],
    labels: Rows,
    random: np.random.Generator,
    weights: Floats | None = None,
    others: Floats | None = None,
) -> Floats:
    """90 % intervals of q, (C, 2), from draws that take turns with the cross-fits."""
    draws = []
    for fit in fits:
        kept, rows = fit.trained_on, _sample(np.arange(len(fit.unlabelled)), BOOTSTRAP_ROWS, random)
        draws.append(
            bootstrap_shares(
                fit.labelled[kept],
                labels[kept],
                fit.unlabelled[rows],
                DRAWS // len(fits),
                random,
                None if weights is None else weights[kept],
                None if others is None else others[rows],
            )
        )
    return interval(shares.share, standard_deviation(shares, np.concatenate(draws), np.bincount(labels, weights)))


def missing_at_random(fit: CrossFit, random: np.random.Generator, permutations: int = PERMUTATIONS) -> Permutation:
    """The test of missing at random, against anything that moves the predicted probabilities."""
    n = len(fit.labelled)
    rows = _sample(np.arange(n + len(fit.unlabelled)), TEST_ROWS, random)
    here, there = rows[rows < n], rows[rows >= n] - n
    values = np.concatenate([fit.labelled[here], fit.unlabelled[there]])
    folds = np.concatenate([fit.fold_labelled[here], fit.fold_unlabelled[there]])
    return hotelling_test(values, rows < n, folds, permutations, random)


def _checks(
    features: Features,
    seen: Features,
    labelled: Rows,
    labels: Rows,
    unlabelled: Rows,
    share: Floats,
    random: np.random.Generator,
) -> tuple[Check, Check]:
    here = _sample(np.arange(len(labelled)), CHECK_ROWS, random)
    there = _sample(np.arange(len(unlabelled)), CHECK_ROWS, random)
    x, others = features[labelled[here]], features[unlabelled[there]]
    sides = (x, others) if seen is features else (seen[labelled[here]], seen[unlabelled[there]])
    domain = domain_check(sides[0], labels[here], class_weights(labels[here], share), sides[1])
    return domain, distance_check(x, class_weights(labels[here], share, least=2), others)


def _classes(
    pool: Pool, estimable: Rows, share: Floats, bounds: Floats, recall: Floats, n: float, m: float
) -> tuple[ClassDiagnosis, ...]:
    """Every class of the pool; one with fewer labels than an estimate takes can only be named."""
    place = {int(c): i for i, c in enumerate(estimable)}
    classes = []
    every = zip(pool.class_names, pool.counts.tolist(), pool.weighted_counts.tolist(), strict=True)
    for c, (name, labels, count) in enumerate(every):
        if c not in place:
            classes.append(ClassDiagnosis(name, labels, count / n, "not estimable"))
            continue
        q, (low, high) = float(share[place[c]]), bounds[place[c]].tolist()
        classes.append(
            ClassDiagnosis(
                name=name,
                labels=labels,
                labelled_share=count / n,
                flag=flag_of(labels),
                share=q,
                share_interval=(low, high),
                propensity=count / (count + m * q),
                propensity_interval=(count / (count + m * high), count / (count + m * low)),
                prior=(count + m * q) / (n + m),
                recall=float(recall[place[c]]),
            )
        )
    return tuple(classes)
