"""What MixMatch and ReMixMatch share: sharpened guesses, and mixup of everything with everything."""

from __future__ import annotations

import torch
from torch import Tensor

from cadr.utils import random_numbers


def one_hot(labels: Tensor, like: Tensor) -> Tensor:
    """Certain predictions (n, C), without a look at the labels' values."""
    return (labels.unsqueeze(1) == torch.arange(like.shape[1], device=labels.device)).to(like.dtype)


def sharpen(predicted: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised: T below 1 makes the guess surer."""
    raised = predicted ** (1 / temperature)
    return raised / raised.sum(1, keepdim=True)


def mixup(inputs: Tensor, targets: Tensor, key: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """λ of each row and 1 − λ of another, with λ from Beta(α, α) but at least one half: a row stays mostly itself.

    The other rows are the same ones in random order. α = 0 mixes nothing.
    """
    if alpha == 0:
        return inputs, targets
    n = len(inputs)
    by_share, by_partner = random_numbers.split(key, 2)
    drawn = random_numbers.beta(by_share, alpha, alpha, n)
    share = torch.maximum(drawn, 1 - drawn)
    partner = random_numbers.permutation(by_partner, n)
    return _mix(inputs, partner, share), _mix(targets, partner, share)


def _mix(rows: Tensor, partner: Tensor, share: Tensor) -> Tensor:
    share = share.reshape(-1, *[1] * (rows.ndim - 1)).to(torch.promote_types(rows.dtype, torch.float32))
    return as_views_lie(rows * share + rows[partner] * (1 - share), rows.dtype)


def as_views_lie(x: Tensor, dtype: torch.dtype) -> Tensor:
    """In the memory order in which images come, channels last."""
    return x.to(dtype, memory_format=torch.channels_last) if x.ndim == 4 else x.to(dtype)
