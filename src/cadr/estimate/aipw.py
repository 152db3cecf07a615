"""Class propensities, and risks when some labels are missing: by weighting, by imputing, and by both.

Every risk has its standard error and takes one number per row. `missing` is 1 (or true) where the label is missing;
`observed` (the loss at the true label) and `propensity` (the probability of being labelled) are never looked at there,
and may hold anything.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cadr.errors import DataError
from cadr.estimate.prior import at_least_float32, at_least_one_row


@torch.no_grad()
def class_propensity(
    labelled_counts: Tensor, prior: Tensor, stream_rows: Tensor, labelled_in_stream: Tensor, floor: float = 1e-5
) -> Tensor:
    """φ_c, (C,): the labelled rows of a class over an estimate of all its rows, clipped to [floor, 1].

    `prior` is the class marginal of the stream. A stream of N rows that contains the labelled ones holds N·P̂_c rows
    of class c, so φ_c = N_c / (N·P̂_c); one of N_u rows that does not leaves them to be added,
    φ_c = N_c / (N_c + N_u·P̂_c). The flag is a 0/1 tensor so that it can live in a captured state.
    """
    counts = at_least_float32(labelled_counts)
    rows = stream_rows * at_least_float32(prior) + (1 - labelled_in_stream.to(counts.dtype)) * counts
    return (counts / rows.clamp(min=torch.finfo(rows.dtype).tiny)).clamp(floor, 1.0)


@torch.no_grad()
def class_weights(propensity: Tensor, labelled_counts: Tensor) -> Tensor:
    """1/φ_c, self-normalised: (C,) weights whose mean over the labelled rows is one.

    Normalised over the labelled set, not over a batch, so that a batch's weighted loss stays unbiased. A class without
    labelled rows has no weight.
    """
    counts, propensity = at_least_float32(labelled_counts), at_least_float32(propensity)
    weights = torch.where(counts > 0, 1.0 / propensity, 0.0)
    return weights * counts.sum() / (weights * counts).sum()


def effective_sample_size(weights: Tensor) -> Tensor:
    """(Σw)² / Σw² (Kish): how many equally weighted rows would be as informative."""
    weights = at_least_float32(weights)
    return weights.sum() ** 2 / (weights**2).sum()


class Risk(NamedTuple):
    value: Tensor  # scalar, differentiable in the losses
    standard_error: Tensor  # scalar, for independent rows and a given propensity

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Normal confidence interval, 95 % by default."""
        value, margin = float(self.value.detach()), z * float(self.standard_error)
        return value - margin, value + margin


def ipw(observed: Tensor, missing: Tensor, propensity: Tensor) -> Risk:
    """Inverse propensity weighting (Horvitz and Thompson): unbiased when the propensity is right."""
    return aipw(observed, torch.zeros_like(observed), missing, propensity)


def imputed(observed: Tensor, imputed: Tensor, missing: Tensor) -> Risk:
    """Observed losses where there are labels, imputed ones elsewhere: unbiased when the imputation is right."""
    _one_per_row(observed, imputed, missing)
    return _mean(torch.where(missing.bool(), at_least_float32(imputed), at_least_float32(observed)))


def aipw(observed: Tensor, imputed: Tensor, missing: Tensor, propensity: Tensor) -> Risk:
    """Imputed losses everywhere, plus the weighted error of the imputation where it can be seen.

    Unbiased when the propensity is right, whatever is imputed. With a wrong propensity it needs imputed losses that
    are right *among the labelled rows*; under MNAR the expected loss given x is not, unless x determines the label.
    """
    _one_per_row(observed, imputed, missing, propensity)
    missing = missing.bool()
    imputed = at_least_float32(imputed)
    observed = torch.where(missing, imputed, at_least_float32(observed))
    propensity = torch.where(missing, torch.ones_like(imputed), at_least_float32(propensity))
    return _mean(imputed + (observed - imputed) / propensity)


def _one_per_row(*given: Tensor) -> None:
    """A column, (n, 1), would be broadcast to n × n, and the mean over that is a number, though a wrong one."""
    shapes = [values.shape for values in given if values.ndim]  # a scalar holds for every row
    if not shapes or any(len(shape) != 1 or shape != shapes[0] for shape in shapes):
        got = ", ".join(str(tuple(values.shape)) for values in given)
        raise DataError(f"There must be one number per row, of shape (n,), in each of the tensors, got shapes {got}.")


def _mean(contributions: Tensor) -> Risk:
    n = at_least_one_row(contributions, "the losses").shape[0]
    spread = contributions.detach().std(correction=0)
    return Risk(contributions.mean(), spread / math.sqrt(max(n - 1, 1)))
