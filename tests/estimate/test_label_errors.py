"""Labels that may be wrong: the fit by a slow oracle, how many right ones are named, and none by mere mistakes."""

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

from cadr.estimate.label_errors import _CALIBRATED, _SHARES, _SURPRISE, _TEMPERATURES, FALSE_ALARMS, wrong_labels


def drawn(n, classes, sure, wrong, seed, temperature=1.0):
    """Calibrated probabilities at this temperature, labels drawn from them, and a share replaced by another class."""
    random = np.random.default_rng(seed)
    logits = sure * random.normal(size=(n, classes))
    truth = (np.exp(log_softmax(logits, axis=1)).cumsum(1) > random.random((n, 1))).argmax(1)
    changed = random.random(n) < wrong
    labels = np.where(changed, (truth + random.integers(1, classes, n)) % classes, truth)
    return np.exp(log_softmax(temperature * logits, axis=1)), labels, changed


def slowly(probabilities, labels):
    """The fit point by point, as the formula has it; the named places."""
    n, classes = probabilities.shape
    table = {}
    for temperature in _TEMPERATURES:
        for share in _SHARES:
            total, each = 0.0, []
            for row, label in zip(probabilities, labels, strict=True):
                p = np.exp(log_softmax(np.log(row) / temperature))[label]
                q = (1 - p) / (classes - 1)
                total += np.log((1 - share) * p + share * q)
                each.append(share * q / ((1 - share) * p + share * q))
            total += norm.logpdf(np.log(temperature), 0, _CALIBRATED)
            table[temperature, share] = total, np.array(each)
    if 2 * (probabilities.argmax(1) != labels).sum() > n:
        return []
    none = max(value for (_, share), (value, _) in table.items() if share == 0)
    best, wrong = max(table.values(), key=lambda found: found[0])
    if 2 * (best - none) < _SURPRISE:
        return []
    places = np.argsort(-wrong, kind="stable")
    most = max((k for k in range(1, n + 1) if (1 - wrong[places[:k]]).mean() <= FALSE_ALARMS), default=0)
    return places[:most].tolist()


@pytest.mark.parametrize(("wrong", "seed"), [(0.0, 0), (0.15, 1), (0.3, 2)])
def test_oracle(wrong, seed):
    probabilities, labels, _ = drawn(40, 3, 6.0, wrong, seed)
    found = wrong_labels(probabilities, labels)
    assert found.places.tolist() == slowly(probabilities, labels)
    assert (len(found.places) > 0) is (wrong > 0)
    assert found.contradicted == (probabilities.argmax(1) != labels).sum()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])  # too cautious, right, too sure of itself
@pytest.mark.parametrize("sure", [0.5, 1.5, 4.0])
def test_right_labels_are_hardly_ever_named_however_often_the_model_is_mistaken(sure, temperature):
    named = [len(wrong_labels(*drawn(200, 5, sure, 0.0, seed, temperature)[:2]).places) for seed in range(20)]
    assert sum(named) <= 0.002 * 20 * 200
    assert sum(n > 0 for n in named) <= 2


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.5])
def test_most_wrong_labels_are_found_and_as_many_right_ones_named_as_is_said(temperature):
    found, named, said, planted = 0, 0, 0.0, 0
    for seed in range(20):
        probabilities, labels, changed = drawn(300, 5, 6.0, 0.1, seed, temperature)
        one = wrong_labels(probabilities, labels)
        found, named, planted = found + changed[one.places].sum(), named + len(one.places), planted + changed.sum()
        said += one.right_after_all
        assert (np.diff(one.probability) <= 0).all()
    assert found > 0.5 * planted
    assert (named - found) / named < 1.5 * FALSE_ALARMS
    assert 0.6 < (named - found) / said < 1.6


def test_nothing_is_named_where_nothing_is_contradicted_or_known():
    assert len(wrong_labels(np.eye(3)[[0, 1, 2]], np.array([0, 1, 2])).places) == 0
    assert len(wrong_labels(0.001 + 0.997 * np.eye(3)[np.arange(90) % 3], (np.arange(90) + 1) % 3).places) == 0
    assert len(wrong_labels(np.full((50, 4), 0.25), np.arange(50) % 4).places) == 0
    assert len(wrong_labels(np.empty((0, 4)), np.empty(0, dtype=np.int64)).places) == 0
