"""What was predicted for each example of the unlabelled stream when it was last seen: a row per position.

A store is a tensor of an algorithm's state like any other, so it is in the checkpoint and in the captured graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

NOTHING = -1  # the class of an example that has not been seen yet


def classes(num_unlabelled: int) -> Tensor:
    """(N,) a class per example, none so far."""
    return torch.full((num_unlabelled,), NOTHING)


def remember(store: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """The store with the rows at `index` replaced.

    Only a batch across the border of two epochs can hold an example twice; one of its two values is then kept.
    """
    return store.index_copy(0, index, values)
