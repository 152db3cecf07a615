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

    A batch across the border of two epochs can hold an example twice; the later value is kept. Both places write it: a
    GPU writes in any order, and a run must not depend on that.
    """
    place = torch.arange(len(index), device=index.device)
    last = torch.where(index.unsqueeze(1) == index, place, 0).amax(1)
    return store.index_copy(0, index, values[last])
