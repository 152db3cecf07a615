"""Shares with intervals: coverage by simulation, and the bootstrap's spread where theory says what it is."""

import json
from pathlib import Path

import numpy as np
import pytest

from cadr.estimate.label_shift import (
    APART,
    FEW_LABELS,
    RESAMPLED,
    Shares,
    bootstrap_shares,
    class_shares,
    interval,
    standard_deviation,
)
from tests.estimate.label_shift_problems import shifted

TUNED = Path(__file__).resolve().parents[2] / "benchmarks" / "diagnosis_tune.json"
COUNTS, SHARE = np.array([80, 40, 20, 10]), np.array([0.1, 0.2, 0.3, 0.4])


def test_intervals_cover():
    """90 % nominal; the allowances for the classifier are not needed with a known posterior, so more is expected."""
    covered = []
    for seed in range(40):
        labelled, labels, unlabelled, truth = shifted(seed, COUNTS, SHARE, 800)
        shares = class_shares(labelled, labels, unlabelled)
        draws = bootstrap_shares(labelled, labels, unlabelled, 20, np.random.default_rng(seed))
        low, high = interval(shares.share, standard_deviation(shares, draws, COUNTS)).T
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered, axis=0).min() >= 0.85
    assert np.mean(covered) >= 0.92


def test_bootstrap_spread_is_binomial_when_classes_are_certain():
    labels, truth = np.repeat(np.arange(3), 50), np.repeat(np.arange(3), [100, 300, 600])
    certain = np.full((3, 3), 0.5e-6) + np.eye(3) * (1 - 1.5e-6)
    draws = bootstrap_shares(certain[labels], labels, certain[truth], 120, np.random.default_rng(0))
    q = np.array([0.1, 0.3, 0.6])
    assert draws.mean(0) == pytest.approx(q, abs=0.005)
    assert draws.std(0, ddof=1) == pytest.approx(np.sqrt(q * (1 - q) / 1000), rel=0.25)


def test_labels_count_for_the_spread_too():
    """Resampling the unlabelled rows alone would say that few labels are as good as many."""
    spread = []
    for scale in (1, 16):
        labelled, labels, unlabelled, _ = shifted(0, COUNTS * scale // 2, SHARE, 20_000)
        draws = bootstrap_shares(labelled, labels, unlabelled, 40, np.random.default_rng(0))
        spread.append(draws.std(0).mean())
    assert spread[0] > 2 * spread[1]


def test_labels_that_look_alike_within_their_class_add_no_spread():
    """How many labels a class has is the bias, and not a thing to resample: just how its labels look is."""
    alike, labels, truth = 0.1 + 0.7 * np.eye(3), np.repeat(np.arange(3), 4), np.repeat(np.arange(3), 1000)
    draws = bootstrap_shares(alike[labels], labels, alike[truth], 20, np.random.default_rng(0))
    binomial = np.sqrt(2 / 9 / 3000) / 0.7  # of the unlabelled rows, and what classes that overlap make of it
    assert draws.std(0, ddof=1) == pytest.approx(binomial, rel=0.5)


def test_fewer_labels_and_a_wider_gap_widen_the_interval():
    draws = np.random.default_rng(0).normal(0.5, 0.01, size=(40, 2))
    near = Shares(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    apart = Shares(np.array([0.45, 0.5]), np.array([0.55, 0.5]))
    few, many = standard_deviation(near, draws, np.array([2, 200]))
    assert few / many == pytest.approx(np.sqrt((1 + FEW_LABELS / 2) / (1 + FEW_LABELS / 200)), rel=0.3)
    assert few > 1.4 * many
    assert standard_deviation(apart, draws, np.array([200, 200]))[0] == pytest.approx(0.1 * np.sqrt(APART), rel=0.1)


def test_the_widening_is_the_stated_rule():
    draws = np.array([[0.2, 0.6], [0.4, 0.6], [0.6, 0.6]])  # variances 0.04 and 0
    shares = Shares(np.array([0.3, 0.5]), np.array([0.4, 0.6]))
    expected = np.sqrt([(3 * 0.04 + 2 * 0.01) * (1 + 5 / 10), 2 * 0.01 * (1 + 5 / 1)])
    assert standard_deviation(shares, draws, np.array([10, 1])) == pytest.approx(expected)


@pytest.mark.skipif(not TUNED.exists(), reason="the benchmark's record is not here")
def test_the_factors_are_those_that_the_record_found_narrowest():
    best = json.loads(TUNED.read_text(encoding="utf-8"))["narrowest"][0]
    assert (best["k"], best["g"], best["a"]) == (RESAMPLED, APART, FEW_LABELS)
    assert min(best["coverage"]) >= 0.93


def test_intervals_stay_within_bounds():
    assert interval(np.array([0.01, 0.99]), np.array([0.1, 0.1])).tolist() == [
        [0.0, pytest.approx(0.1745, abs=1e-3)],
        [pytest.approx(0.8255, abs=1e-3), 1.0],
    ]
