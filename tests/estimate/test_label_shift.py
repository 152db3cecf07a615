"""The class shares that make the unlabelled rows most likely, against quapy, the likelihood's own slope, and truth."""

import importlib
import warnings

import numpy as np
import pytest

from cadr.estimate.label_shift import label_shift
from tests.estimate.label_shift_problems import posterior, sample, shifted

COUNTS, SHARE = [400, 200, 100, 50], [0.1, 0.2, 0.3, 0.4]


@pytest.fixture(scope="module")
def emq():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        try:
            return importlib.import_module("quapy.method.aggregative").EMQ
        except ImportError:
            pytest.skip("quapy, the oracle, is not installed")


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_quapy(emq, seed):
    labelled, _, unlabelled, _ = shifted(seed, COUNTS, SHARE, 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = emq.EM(labelled.mean(0), unlabelled, epsilon=1e-9)
    assert label_shift(unlabelled, labelled.mean(0)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_stands_on_the_summit(seed):
    """The slope Σ f_c/p_c / Σ_k q_k f_k/p_k averages to one where q_c > 0, and to no more where q_c = 0."""
    random = np.random.default_rng(seed)
    f = random.dirichlet(np.full(5, 0.3), 300)
    p = random.dirichlet(np.full(5, 2.0))
    q = label_shift(f, p, tolerance=1e-10)
    slope = (f / p / (f @ (q / p))[:, None]).mean(0)
    assert q.sum() == pytest.approx(1.0)
    assert slope[q > 1e-6] == pytest.approx(1.0, abs=1e-4)
    assert slope.max() < 1.0 + 1e-4


def test_recovers_the_truth_when_the_posterior_is_right():
    random = np.random.default_rng(0)
    truth = random.choice(4, 40_000, p=SHARE)
    prior = np.array([0.7, 0.1, 0.1, 0.1])
    found = label_shift(posterior(sample(truth, random), prior), prior)
    assert found == pytest.approx(np.bincount(truth) / len(truth), abs=0.01)


def test_whole_weights_are_repeated_rows():
    labelled, _, unlabelled, _ = shifted(1, COUNTS, SHARE, 500)
    weights = np.random.default_rng(0).integers(0, 4, 500)
    repeated = label_shift(np.repeat(unlabelled, weights, axis=0), labelled.mean(0))
    assert label_shift(unlabelled, labelled.mean(0), weights.astype(float)) == pytest.approx(repeated, abs=1e-5)


def test_many_problems_at_once_are_the_same_as_one_by_one():
    labelled, _, unlabelled, _ = shifted(2, COUNTS, SHARE, 400)
    random = np.random.default_rng(0)
    weights = random.exponential(size=(400, 3))
    references = (labelled.T @ random.exponential(size=(750, 3))) / 750
    together = label_shift(unlabelled, references / references.sum(0), weights, tolerance=1e-9)
    for b in range(3):
        reference = references[:, b] / references[:, b].sum()
        alone = label_shift(unlabelled, reference, weights[:, b], tolerance=1e-9)
        assert together[:, b] == pytest.approx(alone, abs=1e-6)


def test_extrapolation_needs_a_tenth_of_the_steps():
    """Classes hardly told apart, where EM creeps: 20 leaps of three steps come nearer than 600 plain steps."""
    random = np.random.default_rng(0)
    f = random.dirichlet(np.full(4, 30.0), 2000)
    p = f.mean(0) * np.array([1.02, 0.98, 1.01, 0.99])
    best = label_shift(f, p, tolerance=1e-13, steps=20_000)
    plain = np.full(4, 0.25)
    for _ in range(600):
        joint = f * (plain / p)
        plain = (joint / joint.sum(1, keepdims=True)).mean(0)
    leapt = label_shift(f, p, tolerance=0.0, steps=20)
    assert 10 * np.abs(leapt - best).max() < np.abs(plain - best).max()


@pytest.mark.parametrize("seed", [1, 4, 13, 15])
def test_no_leap_loses_likelihood(seed):
    """On these problems some leap would, if it were made."""
    random = np.random.default_rng(seed)
    classes = int(random.integers(2, 8))
    f = random.dirichlet(np.full(classes, 10 ** random.uniform(-1.5, 1.5)), random.integers(5, 200))
    p = random.dirichlet(np.full(classes, 2.0))
    found = [np.log(f @ (label_shift(f, p, tolerance=0.0, steps=k) / p)).mean() for k in range(1, 12)]
    assert np.diff(found).min() > -1e-12


def test_certain_predictions_are_counted():
    f = np.eye(3)[[0, 0, 0, 1, 2, 2]]
    assert label_shift(f, np.full(3, 1 / 3)) == pytest.approx([3 / 6, 1 / 6, 2 / 6])


def test_a_class_that_no_row_can_have_gets_nothing():
    f = np.array([[0.5, 0.5, 0.0]] * 10)
    found = label_shift(f, np.array([0.5, 0.4, 0.1]))
    assert np.isfinite(found).all()
    assert found[2] == pytest.approx(0.0, abs=1e-9)
