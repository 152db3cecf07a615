"""What training is told of the classes' shares: what a diagnosis finds, or nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from cadr.algorithms import ALGORITHMS
from cadr.classifier import CADRClassifier
from cadr.data.pool import Pool
from cadr.diagnosis.diagnose import diagnose
from cadr.diagnosis.result import WEAK
from cadr.training.target import _may_be_equal, _with_what_is_left, diagnosed_target, takes_target


def blobs(shares, labels_of, apart=4.0, n=1200, seed=0):
    """Gaussian blobs in these shares; of class c the first `labels_of[c]` rows are labelled."""
    random = np.random.default_rng(seed)
    truth = np.sort(random.choice(len(shares), n, p=shares))
    x = (random.normal(size=(n, 6)) + apart * np.eye(len(shares), 6)[truth]).astype(np.float32)
    labels = np.full(n, -1)
    for c, count in enumerate(labels_of):
        labels[np.flatnonzero(truth == c)[:count]] = c
    return Pool(x, labels.astype(np.int64), tuple("abcdef"[: len(shares)])), truth


def test_the_shares_of_all_rows():
    pool, truth = blobs([0.7, 0.2, 0.1], [15, 15, 15])
    target = diagnosed_target(pool).shares
    assert target is not None
    assert target == pytest.approx(np.bincount(truth) / len(truth), abs=0.03)
    assert sum(target) == pytest.approx(1, abs=1e-3)


def test_nothing_where_the_labels_cannot_tell():
    alike = diagnosed_target(blobs([0.5, 0.3, 0.2], [30, 30, 30], apart=0.0)[0])
    assert (alike.shares, alike.why) == (None, "the labels do not refute it")
    everything = diagnosed_target(blobs([0.5, 0.5], [600, 600], n=600)[0])  # no label is missing
    assert (everything.shares, everything.why) == (None, "these labels say nothing about their shares")


def test_rows_that_are_hardly_told_apart():
    """Of a table the intervals decide. Of images they do not: a network may tell apart what a linear one cannot."""
    pool, truth = blobs([0.88, 0.12], [88, 12], apart=1.0)
    labels = np.where(np.random.default_rng(0).random(len(truth)) < 0.1, truth, -1)
    table = dataclasses.replace(pool, labels=labels)
    assert diagnose(table).separability < WEAK
    told = diagnosed_target(table)
    assert told.shares == pytest.approx(np.bincount(truth) / len(truth), abs=0.1)
    assert told.why == "that cadr diagnose estimates"
    pixels = np.clip(128 + 30 * table.examples, 0, 255).astype(np.uint8).reshape(-1, 1, 2, 3)
    images = diagnosed_target(dataclasses.replace(table, examples=pixels))
    assert images.shares is None
    assert images.why.startswith("a linear classifier hardly tells them apart")


def test_a_single_label_of_a_class_where_labels_show_no_bias():
    """Nothing can be said of the class; but its share of the labels is a better guess than a third."""
    pool, _ = blobs([0.83, 0.15, 0.02], [83, 15, 1])
    target = diagnosed_target(pool)
    assert target.shares == pytest.approx([84 / 102, 16 / 102, 2 / 102], abs=1e-4)
    assert target.why == "of the labels, which show no sign of bias"


def test_a_single_label_of_a_class_where_labels_are_biased():
    """The others' shares are known, and it has what they leave; or as much as the rarest of them, if that is more."""
    common = diagnosed_target(blobs([0.15, 0.05, 0.8], [30, 15, 1])[0])
    assert common.shares == pytest.approx([0.15, 0.05, 0.8], abs=0.03)
    assert common.why == "that cadr diagnose estimates, and what they leave for 'c'"
    rare = diagnosed_target(blobs([0.72, 0.26, 0.02], [15, 15, 1])[0])
    assert rare.shares is not None
    assert rare.shares[2] == pytest.approx(rare.shares[1])
    assert rare.shares[0] / rare.shares[1] == pytest.approx(0.72 / 0.26, rel=0.1)
    assert sum(rare.shares) == pytest.approx(1, abs=1e-3)
    assert rare.why == "that cadr diagnose estimates, and 'c' like the rarest of them"
    alone = diagnosed_target(blobs([0.2, 0.8], [20, 1])[0])
    assert (alone.shares, alone.why) == (None, "shares cannot be estimated with so few labels of 'b'")


def test_several_classes_divide_what_is_left():
    diagnosis = diagnose(blobs([0.25] * 4, [20] * 4)[0])
    priors = (0.1, 0.3, None, None)
    classes = tuple(dataclasses.replace(c, prior=prior) for c, prior in zip(diagnosis.classes, priors, strict=True))
    target = _with_what_is_left(dataclasses.replace(diagnosis, classes=classes), ["c", "d"])
    assert target.shares == pytest.approx([0.1, 0.3, 0.3, 0.3])
    assert target.why.endswith("and what they leave for 'c', 'd'")


def test_equal_shares_stand_until_the_labels_refute_them():
    """A noisy estimate of equal shares is worse than equal shares."""
    for seed in range(5):
        for fewest in (3, 1):
            equal = diagnosed_target(blobs([0.25] * 4, [20, 10, 5, fewest], seed=seed)[0])
            assert (equal.shares, equal.why) == (None, "the labels do not refute it")
    target = diagnosed_target(blobs([0.4, 0.2, 0.2, 0.2], [20, 10, 5, 3])[0])
    assert target.shares == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.04)
    assert target.why == "that cadr diagnose estimates"


@pytest.mark.parametrize(("away", "equal"), [(-1.4, False), (-1.3, True), (0.5, True), (1.3, True), (1.4, False)])
def test_four_intervals_are_to_hold_at_once(away, equal):
    """Of four intervals of 90 % one misses in up to 40 % of the cases: z is 2.24 and not 1.64, 1.36 times as far."""
    diagnosis = diagnose(blobs([0.25] * 4, [20] * 4)[0])
    at = (300 - 20) / 1120  # what is left of a fourth of 1,200 rows, among 1,120
    classes = [dataclasses.replace(c, share=at, share_interval=(at - 0.02, at + 0.02)) for c in diagnosis.classes]
    share = at + 0.02 * away
    classes[0] = dataclasses.replace(classes[0], share=share, share_interval=(share - 0.02, share + 0.02))
    assert _may_be_equal(dataclasses.replace(diagnosis, classes=tuple(classes))) == equal


def test_more_than_the_class_decides_who_is_labelled():
    pool, truth = blobs([0.5, 0.3, 0.2], [30, 30, 30])
    assert diagnosed_target(pool).warning == ""
    x = pool.examples.copy()
    x[:, 5] = np.where(pool.labels >= 0, truth, -5)  # somebody's entry, and a number where there is none
    warning = diagnosed_target(dataclasses.replace(pool, examples=x)).warning
    assert warning.startswith("Missingness does not look like a matter of class alone")


def test_labels_may_say_alone_that_shares_are_not_equal():
    """More than a third of all rows has a label of the first class, and no classifier is needed to see that."""
    pool, _ = blobs([0.5, 0.25, 0.25], [500, 5, 5])
    assert diagnosed_target(pool).shares == pytest.approx([0.5, 0.25, 0.25], abs=0.05)


def test_who_is_told():
    assert {name for name, kind in ALGORITHMS.items() if takes_target(kind)} >= {"cap", "cap_cai", "cadr"}
    assert not {"fixmatch", "cai", "darp", "remixmatch", "alignment"} & {
        name for name, kind in ALGORITHMS.items() if takes_target(kind)
    }


def test_a_rare_class_stays_rare():
    """Benign growths nine to one, the rare malignant ones labelled ten times as often."""
    data = load_breast_cancer()
    random = np.random.default_rng(0)
    malignant = random.choice(np.flatnonzero(data.target == 0), 40, replace=False)
    rows = np.concatenate([np.flatnonzero(data.target == 1), malignant])
    X, truth = data.data[rows], 1 - data.target[rows]
    kept = np.random.default_rng(0).random(len(rows)) < np.array([0.05, 0.5])[truth]
    y = np.where(kept, truth, -1)
    told = CADRClassifier("cadr", random_state=0, steps=300).fit(X, y)
    equal = CADRClassifier("cadr", random_state=0, steps=300, settings={"target_prior": (0.5, 0.5)}).fit(X, y)
    right, wrong = ((model.predict(X) == truth)[~kept].mean() for model in (told, equal))
    assert right > 0.95
    assert right > wrong + 0.1
    assert told.class_prior_[1] == pytest.approx(0.1, abs=0.04)
