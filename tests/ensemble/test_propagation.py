"""Label propagation against its closed form."""

import numpy as np
import torch

from cadr.ensemble.propagation import FLOOR, Graph, Propagation
from tests.ensemble.problems import biased

PROBLEM = biased(rows=300, counts=(12, 9, 7, 5, 4, 3, 2, 2, 1, 1))


def _closed_form(x, labels, k, alpha):
    """(1 − α)(I − α S)⁻¹ Y, neighbour by neighbour."""
    n = len(x)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    squared = ((unit[:, None] - unit[None]) ** 2).sum(2)
    np.fill_diagonal(squared, np.inf)
    weights = np.zeros((n, n))
    for i in range(n):
        near = np.argsort(squared[i])[:k]
        for j in near:
            weight = np.exp(-squared[i, j] / squared[i, near[-1]])
            weights[i, j], weights[j, i] = max(weights[i, j], weight), max(weights[j, i], weight)
    root = 1 / np.sqrt(weights.sum(1))
    start = np.zeros((n, 10))
    for c in range(10):
        start[labels == c, c] = (labels >= 0).sum() / 10 / (labels == c).sum()
    spread = (1 - alpha) * np.linalg.solve(np.eye(n) - alpha * root[:, None] * weights * root, start)
    spread += FLOOR * spread.mean(0)
    return spread / spread.sum(1, keepdims=True)


def test_closed_form():
    graph = Graph.of(PROBLEM.x, 7)
    found = np.exp(Propagation(7, 0.8).spread(graph, PROBLEM.labels, 10))
    np.testing.assert_allclose(found, _closed_form(PROBLEM.x.astype(float), PROBLEM.labels, 7, 0.8), atol=1e-3)


def test_rows_that_were_there_keep_what_they_had_and_others_are_between_their_neighbours():
    graph, learner = Graph.of(PROBLEM.x, 7), Propagation(7, 0.8)
    scores = learner.spread(graph, PROBLEM.labels, 10)
    module = learner.module(graph, scores)
    with torch.inference_mode():
        there = module(torch.from_numpy(PROBLEM.x)).exp().numpy()
        beyond = module(torch.from_numpy(PROBLEM.x + 0.1)).exp().numpy()
    np.testing.assert_allclose(there, np.exp(scores), atol=1e-3)
    np.testing.assert_allclose(beyond.sum(1), 1, atol=1e-5)
    assert (beyond.argmax(1) == scores.argmax(1)).mean() > 0.9


def test_a_class_has_the_same_mass_however_many_labels_it_has():
    """Two labels, or the same row twice labelled: what is spread is the same."""
    graph = Graph.of(PROBLEM.x, 7)
    twice = Graph.of(np.repeat(PROBLEM.x, 1, axis=0), 7)
    once = Propagation().spread(graph, PROBLEM.labels, 10)
    np.testing.assert_array_equal(once, Propagation().spread(twice, PROBLEM.labels, 10))
    mass = np.exp(once).sum(0) / len(once)
    assert mass.max() < 4 * mass.min()  # the labels' shares differ twelvefold
