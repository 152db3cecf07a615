"""What is worth labelling, against a greedy search that is written out, and on data where it can be seen."""

import numpy as np

from cadr.data.pool import Pool
from cadr.report.query import covering, least_sure, worth_labelling


def slow_covering(new, old, weights, most):
    """Tries every row at every turn."""

    def covered(taken):
        total = 0.0
        for row, weight in zip(new, weights, strict=True):
            total += weight * max([0.0, *(float(row @ other) for other in [*old, *(new[i] for i in taken)])])
        return total

    taken: list[int] = []
    for _ in range(most):
        taken.append(max((i for i in range(len(new)) if i not in taken), key=lambda i: covered([*taken, i])))
    return taken


def test_greedy_search():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(30, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = random.random(24)
    assert covering(vectors[:24], vectors[24:], weights, 8).tolist() == slow_covering(
        vectors[:24], vectors[24:], weights, 8
    )
    assert covering(vectors[:24], vectors[:0], weights, 3).tolist() == slow_covering(vectors[:24], [], weights, 3)


def clouds(columns):
    """Four clouds of 20; the first has all the labels, and the model cannot decide about any other row."""
    random = np.random.default_rng(1)
    where = np.repeat(np.arange(4), 20)
    x = (4 * random.normal(size=(4, columns))[where] + random.normal(size=(80, columns))).astype(np.float32)
    labels = np.where(np.arange(80) < 6, np.arange(80) % 2, -1)
    rows = np.arange(6, 80)
    sure = np.where(where[rows] == 0, 0.9, 0.5)
    return Pool(x, labels, ("a", "b"), "clouds"), rows, np.stack([sure, 1 - sure], 1), where


def test_every_cloud_is_asked_about_before_any_twice():
    pool, rows, probabilities, where = clouds(200)
    asked = rows[worth_labelling(probabilities, pool, rows, 3)]
    assert sorted(where[asked]) == [1, 2, 3]
    many = worth_labelling(probabilities, pool, rows, 500)
    assert sorted(many) == list(range(len(rows)))  # all of them, each once


def test_in_a_few_columns_the_least_sure_come_first():
    pool, rows, probabilities, _ = clouds(20)
    assert worth_labelling(probabilities, pool, rows, 9).tolist() == least_sure(probabilities)[:9].tolist()
