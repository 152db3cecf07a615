"""Counts and scores against scikit-learn, and the benchmark's rule for lost classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score, recall_score

from cadr import metrics


@pytest.fixture(params=[2, 3, 10])
def drawn(request) -> tuple[np.ndarray, np.ndarray, int]:
    classes = request.param
    generator = np.random.default_rng(classes)
    truth = generator.integers(classes, size=400)
    predicted = np.where(generator.random(400) < 0.6, truth, generator.integers(classes, size=400))
    return truth, predicted, classes


def test_scores_agree_with_scikit_learn(drawn):
    truth, predicted, classes = drawn
    counts = metrics.confusion(torch.from_numpy(truth), torch.from_numpy(predicted), classes)
    assert counts.tolist() == confusion_matrix(truth, predicted, labels=range(classes)).tolist()
    assert metrics.accuracy(counts) == pytest.approx(100 * accuracy_score(truth, predicted))
    recalls = recall_score(truth, predicted, average=None)
    assert metrics.recall(counts).tolist() == pytest.approx((100 * recalls).tolist())
    assert metrics.geometric_mean(counts) == pytest.approx(100 * np.prod(recalls) ** (1 / classes))


def test_a_lost_class_counts_as_a_hundredth_of_chance():
    counts = torch.tensor([[8, 2, 0], [0, 9, 1], [5, 5, 0]])
    expected = 100 * (0.8 * 0.9 * (1 / 300)) ** (1 / 3)
    assert metrics.geometric_mean(counts) == pytest.approx(expected)


def test_a_small_recall_is_not_replaced():
    counts = torch.tensor([[1, 9999], [0, 10]])
    assert metrics.geometric_mean(counts) == pytest.approx(100 * math.sqrt(1e-4))


def test_unknown_truth_and_absent_classes_do_not_count():
    truth, predicted = torch.tensor([0, -1, 2, 0]), torch.tensor([0, 1, 0, 0])
    counts = metrics.confusion(truth, predicted, 3)
    assert counts.tolist() == [[2, 0, 0], [0, 0, 0], [1, 0, 0]]
    recall = metrics.recall(counts).tolist()
    assert recall[0] == 100.0
    assert math.isnan(recall[1])
    assert metrics.geometric_mean(counts) == pytest.approx(100 * math.sqrt(1 / 300))


def test_pseudo_label_quality_agrees_with_scikit_learn(drawn):
    truth, pseudo, classes = drawn
    used = np.random.default_rng(1).random(400) < 0.7
    known = np.random.default_rng(2).random(400) < 0.8
    seen = np.where(known, truth, -1)
    counts = metrics.count_pseudo_labels(
        torch.from_numpy(seen), torch.from_numpy(pseudo), torch.from_numpy(used), classes
    )
    assert int(counts.sum()) == 400
    quality = {name: values.tolist() for name, values in metrics.pseudo_label_quality(counts).items()}
    both = used & known
    precision = precision_score(truth[both], pseudo[both], average=None, labels=range(classes))
    assert quality["precision"] == pytest.approx((100 * precision).tolist())
    assert quality["predicted"] == pytest.approx([100 * np.mean(pseudo == c) for c in range(classes)])
    assert quality["used"] == pytest.approx([100 * np.mean(used[pseudo == c]) for c in range(classes)])
    assert quality["coverage"] == pytest.approx([100 * np.mean(used[known & (truth == c)]) for c in range(classes)])
