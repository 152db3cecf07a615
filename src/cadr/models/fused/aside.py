"""Work that nothing on the way back waits for, on a second stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor


@cache
def _second_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class Aside:
    """Gradients of weights, which fill what the kernels on the way back leave idle. In a captured step the two streams
    are branches of the graph."""

    def __init__(self, device: torch.device) -> None:
        self._main, self._side = torch.cuda.current_stream(device), _second_stream(device)
        self._gradients: dict[Tensor, Tensor] = {}
        self._read: list[tuple[Any, ...]] = []

    def add(self, parameter: Tensor, make: Callable[..., Tensor], *arguments: Any) -> None:
        """What is read is held until the streams meet: memory that was given back could be written to meanwhile."""
        self._read.append(arguments)
        self._side.wait_stream(self._main)
        with torch.cuda.stream(self._side):
            self._gradients[parameter] = make(*arguments)

    def join(self) -> dict[Tensor, Tensor]:
        """The gradients, by parameter."""
        self._main.wait_stream(self._side)
        self._read.clear()
        return self._gradients
