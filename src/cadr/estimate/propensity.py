"""Class propensities φ_c = P(labelled | y = c): proper probabilities, from counts and the predicted class marginal."""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.estimate.prior import at_least_float32


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
