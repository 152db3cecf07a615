"""Multinomial logistic regression on soft labels, which scikit-learn's does not take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.ensemble.learners import FITTING, Fitted, Floats, Matrix
from cadr.utils.optional_imports import optional_import

FIRST_ITERATIONS, ITERATIONS = 100, 25  # of L-BFGS, from nothing and from the fit before


@dataclass(frozen=True)
class Logistic:
    """Half the squared kernel times `ridge` is added to the weighted cross-entropy; biases are free."""

    ridge: float = 3.0
    density = False
    unlabelled_weight = None

    def fit(self, x: Matrix, targets: Floats, weights: Floats, start: Fitted | None = None) -> LinearScores:
        rows, classes = np.hstack([x, np.ones((len(x), 1), np.float32)]), targets.shape[1]
        wanted = (targets * weights[:, None]).astype(np.float32)
        mass = wanted.sum(1, keepdims=True)

        def objective(flat: Floats) -> tuple[float, Floats]:
            kernel = flat.reshape(-1, classes).astype(np.float32)
            with np.errstate(invalid="ignore"):
                logits = rows @ kernel
            logits -= logits.max(1, keepdims=True)
            exponentials = np.exp(logits)
            normaliser = exponentials.sum(1, keepdims=True)
            value = -float((wanted * (logits - np.log(normaliser))).sum(dtype=np.float64))
            with np.errstate(invalid="ignore"):
                gradient = rows.T @ (exponentials / normaliser * mass - wanted)
            gradient[:-1] += self.ridge * kernel[:-1]
            penalty = 0.5 * self.ridge * float((kernel[:-1] ** 2).sum(dtype=np.float64))
            return value + penalty, gradient.astype(np.float64).ravel()

        begin = np.zeros(rows.shape[1] * classes)
        if isinstance(start, LinearScores):
            begin = np.vstack([start.kernel, start.bias]).ravel()
        steps = FIRST_ITERATIONS if start is None else ITERATIONS
        optimize = optional_import("scipy.optimize", FITTING)
        found = optimize.minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
        found = found.reshape(-1, classes)
        return LinearScores(found[:-1], found[-1])


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores x K + b."""

    kernel: Floats  # (d, C)
    bias: Floats  # (C,)

    def scores(self, x: Matrix) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.asarray(x @ self.kernel.astype(np.float32) + self.bias, dtype=np.float64)

    def module(self) -> nn.Module:
        return LinearModule(torch.tensor(self.kernel.T), torch.tensor(self.bias))


class LinearModule(nn.Module):
    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight.float())
        self.register_buffer("bias", bias.float())

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)
