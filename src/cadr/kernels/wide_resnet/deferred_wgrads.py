"""Gradients of weights, which nothing on the way back waits for: they fill what the other kernels leave idle."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from cadr.kernels.cuda_stream import SideStream

_beside = cache(SideStream)  # one for each device


class DeferredGradients:
    """The gradients of one way back."""

    def __init__(self, device: torch.device) -> None:
        self._beside = _beside(device)
        self._gradients: dict[Tensor, Tensor] = {}
        self._read: list[tuple[Any, ...]] = []

    def add(self, parameter: Tensor, make: Callable[..., Tensor], *arguments: Any) -> None:
        self._read.append(arguments)  # held until the streams meet
        with self._beside.work():
            self._gradients[parameter] = make(*arguments)

    def join(self) -> dict[Tensor, Tensor]:
        """The gradients, by parameter."""
        self._beside.join()
        self._read.clear()
        return self._gradients
