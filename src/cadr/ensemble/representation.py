"""Rows as learners see them: the main principal components of columns in their own units, or in one common unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from cadr.ensemble.learners import Floats, Matrix
from cadr.ensemble.logistic import LinearModule

COMPONENTS = 200
MANY = 128  # columns, from which on they are taken for an embedding
_ROWS = 20_000  # that the components are found from
_SPREAD = 5.0  # of the units of columns that are comparable as they are


@dataclass(frozen=True, eq=False)
class Representation:
    """(x − centre) @ axes."""

    centre: Floats  # (d,)
    axes: Floats  # (d, r)

    @staticmethod
    def of(x: Matrix, unit: Floats, random: np.random.Generator, weights: Floats | None = None) -> Representation:
        """From standardised rows (n, d) and what each column is multiplied by."""
        if len(x) > _ROWS:
            some = np.sort(random.choice(len(x), _ROWS, replace=False))
            x, weights = x[some], None if weights is None else weights[some]
        z = x.astype(np.float64) * unit
        mean = z.mean(0) if weights is None else weights @ z / weights.sum()
        from_mean = z - mean
        with np.errstate(invalid="ignore"):
            if weights is None:
                moments = from_mean.T @ from_mean / len(z)
            else:
                moments = from_mean.T @ (from_mean * weights[:, None]) / weights.sum()
            values, vectors = np.linalg.eigh(moments)
        most = min(COMPONENTS, max(2, len(x) // 2), int((values > 1e-9 * values[-1]).sum()))
        values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
        size = np.sqrt(max(values.mean(), 1e-12))
        return Representation(mean / unit, unit[:, None] * vectors / size)

    def __call__(self, x: Matrix) -> Matrix:
        with np.errstate(invalid="ignore"):
            return np.asarray((x - self.centre.astype(np.float32)) @ self.axes.astype(np.float32))

    def module(self) -> nn.Module:
        return LinearModule(torch.tensor(self.axes.T), torch.tensor(-self.centre @ self.axes))


def representations(
    x: Matrix, scale: Floats, random: np.random.Generator, weights: Floats | None = None
) -> dict[str, Representation]:
    """By name: `own` units, `common` unit; `scale` (d,) is what the columns were divided by to be standardised.

    Columns of an embedding are comparable as they are. Those of a table may be euros and years; where their units are
    alike, as those of pixels are, both are tried.
    """
    varying = x.std(0) > 1e-6
    sizes = np.where(varying, scale, 0.0)
    alike = bool(np.quantile(sizes[varying], 0.9) < _SPREAD * np.median(sizes[varying])) if varying.any() else False
    units = {}
    if not alike or x.shape[1] < MANY:
        units["own"] = np.where(varying, 1.0, 1e-12)
    if alike:
        units["common"] = np.where(varying, sizes / sizes.max(), 1e-12)
    return {name: Representation.of(x, unit, random, weights) for name, unit in units.items()}
