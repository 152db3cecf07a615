"""Labels that spread over the graph of nearest neighbours, every class with the same mass to start with.

Zhou et al. (2004), "Learning with local and global consistency": F ← α S F + (1 − α) Y, with S the normalised graph. A
class has the same mass in Y however many labels it has. A row that was not there takes the mean of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cadr.ensemble.learners import FITTING, Floats, Matrix, Rows, class_weights, one_hot
from cadr.utils.optional_imports import optional_import

ITERATIONS = 50
FLOOR = 1e-3  # of the mean mass of a class, which every row has of it
_SAME = 1e-6  # of squared distances, relative to the neighbourhood: the row itself


@dataclass(frozen=True, eq=False)
class Graph:
    """Rows on the unit sphere, and how near each is to its neighbours."""

    points: Matrix  # (n, d), of length 1
    adjacency: Any  # SciPy's sparse matrix, (n, n)
    neighbours: int

    @staticmethod
    def of(x: Matrix, neighbours: int) -> Graph:
        sparse = optional_import("scipy.sparse", FITTING)
        sklearn = optional_import("sklearn.neighbors", FITTING)
        points = on_sphere(x)
        neighbours = min(neighbours, len(x) - 1)
        with np.errstate(invalid="ignore"):
            distance, index = sklearn.NearestNeighbors(n_neighbors=neighbours + 1).fit(points).kneighbors(points)
        distance, index = distance[:, 1:].astype(np.float64), index[:, 1:]
        weight = np.exp(-(distance**2) / np.maximum(distance[:, -1:] ** 2, 1e-12))
        rows = np.repeat(np.arange(len(x)), neighbours)
        one_way = sparse.csr_matrix((weight.ravel(), (rows, index.ravel())), shape=(len(x), len(x)))
        both_ways = one_way.maximum(one_way.T)
        degree = sparse.diags(1.0 / np.sqrt(np.maximum(np.asarray(both_ways.sum(1)).ravel(), 1e-12)))
        return Graph(points, sparse.csr_matrix(degree @ both_ways @ degree), neighbours)


@dataclass(frozen=True)
class Propagation:
    neighbours: int = 10
    alpha: float = 0.9

    def spread(self, graph: Graph, labels: Rows, num_classes: int, rows: Floats | None = None) -> Floats:
        """(n, C) logarithms of class probabilities of all rows, from the labels (n,) there are, −1 where missing.

        `rows` (n,) is for how many rows each one counts.
        """
        known = labels >= 0
        start = np.zeros((len(labels), num_classes))
        uniform = np.full(num_classes, 1.0 / num_classes)
        weights = class_weights(labels[known], uniform, None if rows is None else rows[known])
        start[known] = one_hot(labels[known], num_classes) * weights[:, None]
        mass = start.copy()
        for _ in range(ITERATIONS):
            mass = self.alpha * (graph.adjacency @ mass) + (1.0 - self.alpha) * start
        mass += FLOOR * mass.mean(0)
        return np.asarray(np.log(mass / mass.sum(1, keepdims=True)))

    def module(self, graph: Graph, scores: Floats) -> nn.Module:
        return NeighboursModule(
            torch.from_numpy(np.ascontiguousarray(graph.points)),
            torch.from_numpy(np.exp(scores).astype(np.float32)),
            torch.zeros(graph.neighbours),
        )


class NeighboursModule(nn.Module):
    """The mean of what neighbours have, the nearer the more; a row that was there has what it had."""

    points: Tensor
    shares: Tensor
    neighbours: Tensor  # as long as there are neighbours

    def __init__(self, points: Tensor, shares: Tensor, neighbours: Tensor) -> None:
        super().__init__()
        self.register_buffer("points", points)
        self.register_buffer("shares", shares)
        self.register_buffer("neighbours", neighbours)

    def forward(self, x: Tensor) -> Tensor:
        x = x / x.norm(dim=1, keepdim=True).clamp(min=1e-9)
        near, index = (x @ self.points.T).topk(self.neighbours.shape[0], dim=1)
        squared = (2.0 - 2.0 * near).clamp(min=0.0)
        relative = squared / squared[:, -1:].clamp(min=1e-12)
        weight = torch.exp(-relative) / (relative + _SAME)
        mass = (weight.unsqueeze(2) * self.shares[index]).sum(1)
        return torch.log(mass / mass.sum(1, keepdim=True))


def on_sphere(x: Matrix) -> Matrix:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9), dtype=np.float32)
