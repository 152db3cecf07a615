"""Does more than the class decide who is labelled, and is there a class that nobody labelled? What the checks say."""

import dataclasses

import numpy as np
import pytest

from cadr.data import Pool
from cadr.diagnosis.checks import DOMAIN_RIDGE, domain_check, left_out_scores
from cadr.diagnosis.diagnose import diagnose
from tests.diagnosis.test_diagnosis import blobs


def labelled_by_a_feature(seed, rows=1500, labels=100):
    """Three classes that overlap and are labelled equally often, but mostly the upper half of each, by a feature."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, rows)
    x = (random.normal(size=(rows, 6)) + 1.8 * np.eye(3, 6)[truth]).astype(np.float32)
    middle = np.array([np.median(x[truth == c, 0]) for c in range(3)])
    chance = np.where(x[:, 0] > middle[truth], 1.85, 0.15)
    known = np.where(random.random(rows) < chance * labels / rows, truth, -1)
    return Pool(x, known, ("a", "b", "c"), "overlapping")


def test_scores_are_those_of_a_discriminant_that_has_not_seen_the_row():
    random = np.random.default_rng(0)
    x, groups = random.normal(size=(30, 4)), np.array([0] * 6 + [1] * 3 + [2] + [3] * 20)
    labelled, weights = groups < 3, np.array([0.04] * 6 + [0.06] * 3 + [0.08] + [0.025] * 20)
    scores = left_out_scores(x, weights, groups, labelled)
    centred = x - np.average(x, axis=0, weights=weights)
    for i in range(30):
        kept, spread = np.arange(30) != i, weights.copy()
        mates = kept & (groups == groups[i])
        spread[mates] += weights[i] / max(mates.sum(), 1)
        between = np.where(labelled, spread, -spread)[kept] @ centred[kept]
        within = (centred[kept].T * weights[kept]) @ centred[kept] + DOMAIN_RIDGE * np.eye(4)
        assert scores[i] == pytest.approx(centred[i] @ np.linalg.inv(within) @ between)


@pytest.mark.parametrize(("rows", "limit"), [(20, 0.5 + 3.0 / np.sqrt(12 * 20)), (2000, 0.58)])
def test_a_difference_that_chance_makes_is_not_suspicious(rows, limit):
    random = np.random.default_rng(0)
    x, others = (random.normal(size=(n, 3)).astype(np.float32) for n in (rows, 2000))
    found = domain_check(x, np.zeros(rows, dtype=np.int64), np.ones(rows), others)
    assert found.limit == pytest.approx(limit)
    assert found.value < found.limit


def test_neither_the_seed_nor_the_order_of_the_rows_decides():
    """With so few labels four draws of folds gave AUCs that lie 0.07 apart."""
    pool = blobs([14, 8, 4], rows=400)
    order = np.random.default_rng(0).permutation(len(pool.labels))
    turned = Pool(pool.examples[order], pool.labels[order], pool.class_names, pool.name)
    found = [*(diagnose(pool, seed=seed) for seed in range(4)), diagnose(turned)]
    assert np.ptp([d.domain_auc for d in found]) < 0.02
    assert np.ptp([d.far_share - d.far_limit for d in found]) < 0.02


def test_missingness_by_features_is_said():
    pool = blobs([0, 0, 0], rows=3000)
    chance = 1 / (1 + np.exp(-2.5 * pool.examples[:, 5].astype(float)))
    labels = np.where(np.random.default_rng(0).random(3000) < 0.2 * chance, pool.hidden_labels, -1)
    found = diagnose(dataclasses.replace(pool, labels=labels))
    assert found.domain_auc > found.domain_limit
    assert "class alone does not explain" in found.verdict
    assert any("class alone" in warning for warning in found.warnings)


def test_a_feature_that_decides_is_seldom_taken_for_the_class():
    """With 100 labels of classes that overlap; with a single draw of folds two of these were."""
    assert all(diagnose(labelled_by_a_feature(seed)).other_than_class for seed in range(5))


def test_the_comparison_of_classes_says_what_it_rests_on():
    first, _ = diagnose(blobs([60, 40, 4])).verdict.split(". ")
    assert first.endswith("than class class 0, if the class alone decides")


def test_a_class_nobody_labelled_is_suspected_when_it_lies_apart():
    pool = blobs([60, 60, 60, 0], rows=800)
    far = pool.examples.copy()
    far[pool.hidden_labels == 3] += 4.0
    found = diagnose(dataclasses.replace(pool, examples=far))
    assert any("nobody labelled" in warning for warning in found.warnings)
    assert not any("nobody labelled" in warning for warning in diagnose(blobs([60, 60, 60])).warnings)


@pytest.mark.parametrize(("auc", "accuracy", "doubted"), [(0.5, 0.9, False), (0.7, 0.9, True), (0.5, 0.4, True)])
def test_rows_far_from_every_label_may_have_the_reason_of_another_warning(auc, accuracy, doubted):
    found = diagnose(blobs([60, 60, 60]))
    found = dataclasses.replace(found, far_share=0.3, domain_auc=auc, balanced_accuracy=accuracy)
    *before, last = found.warnings
    assert "nobody labelled: 30 % of the unlabelled rows" in last
    assert last.endswith("what the warning before this one says may be the reason.") == doubted
    assert bool(before) == doubted
