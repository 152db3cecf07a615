"""Classes with a single label: it is trained on, so it may neither raise an alarm nor vouch for the classifier."""

import dataclasses

import numpy as np
import pytest

from cadr.data import Pool
from cadr.diagnosis import diagnose as module
from cadr.diagnosis.cross_fit import FOLDS, cross_fit
from cadr.diagnosis.diagnose import diagnose, missing_at_random
from cadr.diagnosis.features import fit_features
from cadr.training.target import diagnosed_target

CLASSES, ROWS = 30, 1500


def drawn_at_random(seed, labels=80):
    """Thirty classes, some five times rarer than others, so that many have one label of the eighty; and the truth."""
    random = np.random.default_rng(seed)
    chance = np.geomspace(5, 1, CLASSES)
    truth = random.choice(CLASSES, ROWS, p=chance / chance.sum())
    x = (random.normal(size=(CLASSES, 8))[truth] + random.normal(size=(ROWS, 8))).astype(np.float32)
    known = np.full(ROWS, -1)
    chosen = random.choice(ROWS, labels, replace=False)
    known[chosen] = truth[chosen]
    return Pool(x, known, tuple(map(str, range(CLASSES))), "drawn")


def noise(counts, seed=0, rows=600):
    """Features that say nothing; counts[c] labels of class c."""
    random = np.random.default_rng(seed)
    known = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.full(rows, -1)])
    x = random.normal(size=(len(known), 8)).astype(np.float32)
    return Pool(x, known, tuple(f"class {c}" for c in range(len(counts))), "noise")


def fitted(pool, hold_out_single, seed=0):
    random = np.random.default_rng(seed)
    labelled, unlabelled = np.flatnonzero(pool.labels >= 0), np.flatnonzero(pool.labels < 0)
    y = np.unique(pool.labels[labelled], return_inverse=True)[1]
    features = fit_features(pool, np.arange(len(pool.labels)), random)
    return cross_fit(features, labelled, y, unlabelled, random, hold_out_single), y


def test_they_do_not_raise_false_alarms():
    """At the 5 % level thirty draws at random are rejected 1.5 times; with single labels trained on, ten times."""
    rejected = [
        missing_at_random(fitted(drawn_at_random(seed), True)[0], np.random.default_rng(seed), 99).p_value < 0.05
        for seed in range(30)
    ]
    assert sum(rejected) <= 5  # more than that has a chance of 0.3 %, by the binomial distribution


def test_the_verdict_is_of_labels_that_were_all_held_out():
    rejected = [diagnose(drawn_at_random(seed)).p_value < 0.05 for seed in range(6)]
    assert sum(rejected) <= 1


def test_held_out_its_class_is_unknown_in_its_fold_and_nowhere_else():
    fit, y = fitted(drawn_at_random(1), hold_out_single=True)
    singles = np.flatnonzero(np.bincount(y)[y] == 1)
    assert len(singles) > 3
    for row in singles:
        fold, own = fit.fold_labelled[row], y[row]
        assert (fit.unlabelled[fit.fold_unlabelled == fold, own] == 0).all()
        assert (fit.unlabelled[fit.fold_unlabelled != fold, own] > 0).all()
    assert np.allclose(fit.unlabelled.sum(1), 1)
    kept, _ = fitted(drawn_at_random(1), hold_out_single=False)
    assert (kept.unlabelled > 0).all()


def test_a_fold_may_know_a_single_class():
    pool = noise([20, 1])
    fit, y = fitted(pool, hold_out_single=True)
    fold = fit.fold_labelled[y == 1]
    assert (fit.unlabelled[fit.fold_unlabelled == fold] == [1.0, 0.0]).all()
    assert 0 <= fold < FOLDS
    assert diagnose(pool).p_value > 0.05


@pytest.mark.parametrize("singles", [4, 8])
def test_they_do_not_vouch_for_features_that_say_nothing(singles):
    found = diagnose(noise([20] * (10 - singles) + [1] * singles))
    known = [c.recall for c in found.classes if c.recall is not None]
    assert found.balanced_accuracy == pytest.approx(np.mean(known))
    assert [c.recall is None for c in found.classes] == [c.labels == 1 for c in found.classes]
    assert "do not trust the estimates below" in found.verdict


def test_one_class_with_several_labels_is_nothing_to_check_on():
    found = diagnose(noise([20, 1, 1, 1]))
    assert "only one class has more than one label" in found.verdict
    assert "worth about" not in found.verdict
    assert "told apart by a linear classifier" not in str(found)
    assert not any("Weak separability" in warning for warning in found.warnings)


def test_labels_that_show_no_bias_give_the_target_with_nothing_to_check_on_either():
    target = diagnosed_target(dataclasses.replace(noise([40, 1]), name="two"))
    assert target.shares == pytest.approx([41 / 43, 2 / 43], abs=1e-4)


def test_nothing_is_estimated_and_what_the_labels_are_worth_is_a_bound():
    random = np.random.default_rng(0)
    pool = noise([60, 40, 1])
    truth = np.where(pool.labels >= 0, pool.labels, random.integers(0, 3, len(pool.labels)))
    found = diagnose(dataclasses.replace(pool, examples=pool.examples + 3 * np.eye(3, 8, dtype=np.float32)[truth]))
    single = found.classes[2]
    assert (single.labels, single.flag) == (1, "not estimable")
    assert (single.share, single.propensity, single.prior, single.recall) == (None, None, None, None)
    assert single.labelled_share == pytest.approx(1 / 101)
    weights = 1 / np.repeat([c.propensity for c in found.classes[:2]], [60, 40])
    assert found.effective_labels == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    said = f"at most about {found.effective_labels + 1:,.0f}"  # the single label may be worth one at most
    assert f"labels are worth {said} drawn at random" in found.verdict
    assert f"Effective number of labels: {said} of 101" in str(found)


def test_a_sample_of_the_labels_may_lack_classes(monkeypatch):
    """Of ten thousands of labels some are looked at: what they do not show is not estimated, and all else is."""
    pool = noise([60, 60, 60, 6, 5, 4, 3, 2, 2])
    random = np.random.default_rng(0)
    truth = np.where(pool.labels >= 0, pool.labels, random.integers(0, 9, len(pool.labels)))
    pool = dataclasses.replace(pool, examples=pool.examples + 4 * np.eye(9, 8, dtype=np.float32)[truth])
    monkeypatch.setattr(module, "SCORES", 2 * 9 * 4 * 40)  # 40 rows of either kind
    for seed in range(3):
        found = diagnose(pool, seed=seed)
        assert "NaN" not in found.to_json()
        unknown = [c for c in found.classes if c.propensity is None]
        assert unknown
        assert all(c.flag == "not estimable" and c.recall is None for c in unknown)
        assert sum(c.share for c in found.classes if c.share is not None) <= 1 + 1e-9
        assert [c.labels for c in found.classes] == pool.counts.tolist()
