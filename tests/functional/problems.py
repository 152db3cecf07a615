"""Random problems for the comparison of `cadr.functional` with the oracles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from tests.oracles.softmax import Array, Indices

MODEST = settings(max_examples=50)
FEW = settings(max_examples=25)

LOGITS = ("normal", "large", "extreme", "one_hot", "uniform", "vanished")
PRIORS = ("skewed", "uniform", "tiny")


@dataclass(frozen=True)
class Problem:
    """One step's input in float64 (rounded to float32 on request), and the hyper-parameters."""

    labelled: Array
    labels: Indices
    weak: Array
    strong: Array
    prior: Array
    threshold_prior: Array
    momentum: float = 0.99
    threshold: float = 0.95
    beta: float = 0.5

    @property
    def kappa(self) -> tuple[float, float, float]:
        return self.momentum, self.threshold, self.beta

    def rounded(self, dtype: torch.dtype) -> Problem:
        """The same problem with values that `dtype` holds exactly, so that only the computing differs."""

        def nearest(values: Array) -> Array:
            return np.asarray(torch.tensor(values).to(dtype).double().numpy(), dtype=np.float64)

        return Problem(
            nearest(self.labelled),
            self.labels,
            nearest(self.weak),
            nearest(self.strong),
            nearest(self.prior),
            nearest(self.threshold_prior),
            *self.kappa,
        )


def logits(kind: str, rows: int, classes: int, rng: np.random.Generator) -> Array:
    values = rng.normal(size=(rows, classes))
    if kind == "large":
        values = 30.0 * values
    if kind == "extreme":
        values = rng.choice([-1e4, -1.0, 0.0, 1e4], size=(rows, classes)) + values
    if kind == "one_hot":
        values = 1e4 * np.eye(classes)[rng.integers(classes, size=rows)]
    if kind == "sharp":
        values = 20.0 * np.eye(classes)[rng.integers(classes, size=rows)]
    if kind == "uniform":
        values = np.zeros((rows, classes))
    if kind == "vanished":  # one class has probability zero in every row, even in float64
        values[:, rng.integers(classes)] = -1e4
    return np.asarray(values, dtype=np.float64)


def prior(kind: str, classes: int, rng: np.random.Generator) -> Array:
    values = rng.exponential(size=classes) ** 2 + 1e-3
    if kind == "uniform":
        values = np.ones(classes)
    if kind == "tiny":  # a class that has not been predicted for thousands of steps
        values[rng.integers(classes)] = 1e-30
    return np.asarray(values / values.sum(), dtype=np.float64)


@st.composite
def problems(
    draw: st.DrawFn,
    kinds: tuple[str, ...] = LOGITS,
    priors: tuple[str, ...] = PRIORS,
    max_classes: int = 200,
    max_rows: int = 24,
) -> Problem:
    classes = draw(st.integers(2, max_classes))
    batch, stream = draw(st.integers(1, max_rows)), draw(st.integers(1, 2 * max_rows))
    labelled_kind, weak_kind, strong_kind = (draw(st.sampled_from(kinds)) for _ in range(3))
    prior_kind, threshold_kind = (draw(st.sampled_from(priors)) for _ in range(2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Problem(
        logits(labelled_kind, batch, classes, rng),
        rng.integers(classes, size=batch),
        logits(weak_kind, stream, classes, rng),
        logits(strong_kind, stream, classes, rng),
        prior(prior_kind, classes, rng),
        prior(threshold_kind, classes, rng),
        draw(st.sampled_from([0.0, 0.5, 0.99, 0.999])),
        draw(st.sampled_from([0.0, 0.3, 0.8, 0.95])),
        draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
    )


def tensor(values: Array, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def leaf(values: Array, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def gradients(value: Tensor, *leaves: Tensor) -> list[Array]:
    """∂value/∂leaf for every leaf; zero where nothing flows."""
    if not value.requires_grad:
        return [np.zeros(tuple(x.shape)) for x in leaves]
    found = torch.autograd.grad(value, leaves, allow_unused=True, retain_graph=True)
    return [
        np.zeros(tuple(x.shape)) if g is None else np.asarray(g.double().numpy(), dtype=np.float64)
        for g, x in zip(found, leaves, strict=True)
    ]


def close(ours: Tensor | Array, oracle: float | Array, *, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    """Equal to rounding, and finite: assert_allclose alone would take NaN for equal to NaN."""
    values = ours.detach().double().numpy() if isinstance(ours, Tensor) else ours
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values, oracle, rtol=rtol, atol=atol)
