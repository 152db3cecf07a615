"""scikit-learn's random forest, kept as plain arrays: no pickle, and a module that can be exported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cadr.ensemble.learners import FITTING, Fitted, Floats, Matrix
from cadr.utils.optional_imports import optional_import

FLOOR = 1 / 300  # of a probability: no tree in a few hundred saw the class
LEAST = 0.5  # of a target: less is no label for a tree, which takes one


@dataclass(frozen=True)
class Forest:
    """Trees take the likeliest class of a row for its label."""

    trees: int = 60
    leaf: int = 2  # rows in a leaf, at least
    seed: int = 0
    density = False
    unlabelled_weight = None

    def fit(self, x: Matrix, targets: Floats, weights: Floats, start: Fitted | None = None) -> ForestScores:
        sklearn = optional_import("sklearn.ensemble", FITTING)
        forest = sklearn.RandomForestClassifier(
            self.trees, min_samples_leaf=self.leaf, random_state=self.seed, n_jobs=1
        )
        forest.fit(x, targets.argmax(1), weights)
        return ForestScores.of(forest, targets.shape[1])


@dataclass(frozen=True, eq=False)
class ForestScores:
    """Trees one after another in one list of nodes; a leaf is its own child."""

    feature: Any  # (nodes,) int64
    threshold: Any  # (nodes,) float32
    left: Any  # (nodes,) int64
    right: Any
    value: Any  # (nodes, C) float32
    roots: Any  # (trees,) int64
    depth: int

    @staticmethod
    def of(forest: Any, num_classes: int) -> ForestScores:
        trees = [one.tree_ for one in forest.estimators_]
        sizes = np.array([tree.node_count for tree in trees])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        value = np.zeros((sizes.sum(), num_classes), np.float32)
        left, right = np.empty(sizes.sum(), np.int64), np.empty(sizes.sum(), np.int64)
        for root, tree in zip(roots, trees, strict=True):
            own = np.arange(tree.node_count)
            leaf = tree.children_left < 0
            here = slice(root, root + tree.node_count)
            left[here] = root + np.where(leaf, own, tree.children_left)
            right[here] = root + np.where(leaf, own, tree.children_right)
            share = tree.value[:, 0, :]
            value[here, forest.classes_] = share / share.sum(1, keepdims=True)
        exact = np.concatenate([tree.threshold for tree in trees])
        threshold = exact.astype(np.float32)
        above = threshold > exact  # rounded up, a row between the two would go the other way
        threshold[above] = np.nextafter(threshold[above], np.float32(-np.inf))
        feature = np.maximum(np.concatenate([tree.feature for tree in trees]), 0).astype(np.int64)
        return ForestScores(feature, threshold, left, right, value, roots, max(tree.max_depth for tree in trees))

    def scores(self, x: Matrix) -> Floats:
        module = self.module()
        with torch.inference_mode():
            parts = [module(part) for part in torch.split(torch.from_numpy(np.ascontiguousarray(x)), self._rows)]
        return np.asarray(torch.cat(parts).double().numpy())

    @property
    def _rows(self) -> int:
        return max(1, 2**23 // int(len(self.roots) * self.value.shape[1]))

    def module(self) -> nn.Module:
        names = ("feature", "threshold", "left", "right", "value", "roots")
        arrays = {name: torch.from_numpy(np.ascontiguousarray(getattr(self, name))) for name in names}
        return ForestModule(**arrays, depth=torch.zeros(self.depth))


class ForestModule(nn.Module):
    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    roots: Tensor
    depth: Tensor  # as long as a path may be: its length is part of the program

    def __init__(self, **arrays: Tensor) -> None:
        super().__init__()
        for name, array in arrays.items():
            self.register_buffer(name, array)
        nodes = torch.cat([self.left.flatten(), self.right.flatten(), self.roots.flatten()])
        if len(nodes) and not (int(nodes.min()) >= 0 and int(nodes.max()) < len(self.value)):
            raise ValueError("a branch leads to no node")

    def forward(self, x: Tensor) -> Tensor:
        node = self.roots.expand(x.shape[0], -1)  # (n, trees)
        for _ in range(self.depth.shape[0]):
            right = x.gather(1, self.feature[node]) > self.threshold[node]
            node = torch.where(right, self.right[node], self.left[node])
        share = self.value[node].mean(1)
        return torch.log(share + FLOOR) - math.log1p(FLOOR * self.value.shape[1])
