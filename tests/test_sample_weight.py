"""A row of weight k counts like k rows: scikit-learn's own checks, and every part by itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.utils import estimator_checks

from cadr.classifier import CADRClassifier
from cadr.data.pool import Pool
from cadr.data.replicates import merged
from cadr.diagnosis.diagnose import diagnose
from cadr.errors import DataError
from cadr.training.feed import Inputs

BRIEFLY = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")
CHECKS = [
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
]


def clouds(n=150, seed=0):
    """Three classes, of which the last has few labels; whole weights, some of them 0."""
    random = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    x = (random.normal(size=(n, 5)) + 3 * np.eye(3, 5)[truth]).astype(np.float32)
    labels = np.where(random.random(n) < np.array([0.6, 0.4, 0.2])[truth], truth, -1)
    return x, labels, random.integers(0, 4, n), truth


def pool_of(x, labels, weights=None):
    return Pool(x, labels, ("a", "b", "c"), "clouds", weights=weights)


@BRIEFLY
@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_checks_of_the_ensemble(name):
    getattr(estimator_checks, name)("CADRClassifier", CADRClassifier(random_state=0))


@BRIEFLY
@pytest.mark.parametrize("settings", [{}, {"algorithm": "cadr", "steps": 20, "batch": 8, "ratio": 2}])
def test_weighted_is_repeated_in_all_that_is_learned(settings):
    """Of the ensemble, and of a network."""
    x, labels, weights, _ = clouds()
    y = np.array(["", "ant", "bee", "cat"])[labels + 1]
    order = np.random.default_rng(1).permutation(weights.sum())
    ours = CADRClassifier(random_state=0, **settings).fit(x, y, weights)
    theirs = CADRClassifier(random_state=0, **settings).fit(
        np.repeat(x, weights, axis=0)[order], np.repeat(y, weights)[order]
    )
    np.testing.assert_array_equal(ours.predict_proba(x), theirs.predict_proba(x))
    np.testing.assert_allclose(ours.class_prior_, theirs.class_prior_, rtol=1e-9)
    np.testing.assert_allclose(ours.propensity_, theirs.propensity_, rtol=1e-9)
    assert ours.history_ == theirs.history_
    assert ours.score(x, y, weights) == pytest.approx(
        theirs.score(np.repeat(x, weights, axis=0), np.repeat(y, weights)), rel=1e-12
    )


@BRIEFLY
def test_weights_of_one_change_nothing():
    x, labels, _, _ = clouds()
    plain = CADRClassifier(random_state=0).fit(x, labels)
    ones = CADRClassifier(random_state=0).fit(x, labels, np.ones(len(x)))
    np.testing.assert_array_equal(plain.predict_proba(x), ones.predict_proba(x))


@BRIEFLY
def test_shares_are_those_of_the_weighted_population():
    """The last class is rare in the sample and has been drawn with a low probability: weights put it right."""
    random = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2], [200, 100, 30])
    x = random.normal(size=(330, 5)) + 4 * np.eye(3, 5)[truth]
    labels = np.where(random.random(330) < 0.3, truth, -1)
    weights = np.array([0.5, 1.0, 200 / 30])[truth]  # classes of 100, 100 and 200
    model = CADRClassifier(random_state=0).fit(x, labels, weights)
    np.testing.assert_allclose(model.class_prior_, [0.25, 0.25, 0.5], atol=0.04)
    assert CADRClassifier(random_state=0).fit(x, labels).class_prior_[2] < 0.15


def test_the_report_is_of_the_weighted_data(tmp_path):
    x, labels, weights, _ = clouds()
    model = CADRClassifier(random_state=0).fit(x, labels, weights)
    model.report(tmp_path / "page.html", x, labels, weights)
    assert (tmp_path / "page.html").stat().st_size > 1000
    left_out = model.report(tmp_path / "other.html", x, labels, 2 * weights)
    assert any("have changed" in words for words in left_out)


def test_diagnosis():
    """Merged or weighted, the estimates are those of repeated rows, up to which rows share a fold."""
    x, labels, weights, truth = clouds(900, seed=2)
    kept = weights > 0
    weighted = diagnose(pool_of(x[kept], labels[kept], weights[kept].astype(float)))
    repeated = diagnose(pool_of(np.repeat(x, weights, axis=0), np.repeat(labels, weights)))
    for ours, theirs in zip(weighted.classes, repeated.classes, strict=True):
        assert ours.labelled_share == pytest.approx(theirs.labelled_share, rel=1e-12)
        assert ours.share == pytest.approx(theirs.share, abs=0.02)
        assert ours.propensity == pytest.approx(theirs.propensity, abs=0.02)
        assert ours.share_interval is not None
        assert theirs.share_interval is not None
        width, other = (float(np.ptp(interval)) for interval in (ours.share_interval, theirs.share_interval))
        assert width == pytest.approx(other, rel=0.5)
    rare = np.where(truth == 2, 5.0, 1.0)
    more, alike = (diagnose(pool_of(x, labels, w)).classes[2].share for w in (rare, None))
    assert more is not None
    assert alike is not None
    assert more > alike + 0.2
    ones = diagnose(pool_of(x, labels, np.ones(len(x))))
    assert ones.classes[1].share == pytest.approx(diagnose(pool_of(x, labels)).classes[1].share, abs=1e-6)


def test_a_network_draws_rows_as_often_as_they_count():
    x, labels, _, _ = clouds(60)
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    inputs = Inputs.of(pool_of(x, labels, weights), torch.device("cpu"))
    np.testing.assert_array_equal(np.bincount(inputs.stream.numpy(), minlength=60), weights)
    known = np.bincount(inputs.labelled.numpy(), minlength=60)
    np.testing.assert_array_equal(known, np.where(labels >= 0, weights, 0))
    np.testing.assert_array_equal(inputs.counts.numpy(), np.bincount(labels[labels >= 0], weights[labels >= 0]))
    assert inputs.centre is not None
    assert inputs.scale is not None
    many = np.repeat(x, weights.astype(int), axis=0).astype(np.float64)
    np.testing.assert_allclose(inputs.centre.numpy(), many.mean(0), rtol=1e-5)
    np.testing.assert_allclose(inputs.scale.numpy(), many.std(0), rtol=1e-5)
    parts = weights / np.pi
    inputs = Inputs.of(pool_of(x, labels, parts), torch.device("cpu"))
    drawn = np.bincount(inputs.stream.numpy(), minlength=60)
    np.testing.assert_allclose(drawn / drawn.sum(), parts / parts.sum(), rtol=0.1)


def test_merging():
    x, labels, weights, _ = clouds(40)
    weights = weights + 1.0
    order = np.random.default_rng(0).permutation(40)
    ours = merged(pool_of(x, labels, weights))
    repeated = merged(pool_of(*(np.repeat(part, weights.astype(int), axis=0) for part in (x, labels))))
    shuffled = merged(pool_of(x[order], labels[order], weights[order]))
    for other in (repeated, shuffled):
        np.testing.assert_array_equal(ours.examples, other.examples)
        np.testing.assert_array_equal(ours.labels, other.labels)
        np.testing.assert_array_equal(ours.weights, other.weights)
    assert ours.weights is not None
    assert ours.weights.sum() == weights.sum()
    alone = pool_of(x, labels)
    assert merged(alone).examples is alone.examples or (merged(alone).examples == x).all()
    assert merged(alone).weights is None


@pytest.mark.parametrize("bad", [np.zeros(40), np.full(40, np.nan), -np.ones(40), np.ones(39), np.ones(40, dtype=int)])
def test_weights_that_are_none_are_refused(bad):
    x, labels, _, _ = clouds(40)
    with pytest.raises(DataError, match="weights must be 40 finite float64 numbers above 0"):
        dataclasses.replace(pool_of(x, labels), weights=bad)
