"""A second stream of the GPU beside the first, and gradients of weights made on it.

In a captured step the two are branches of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor


class SideStream:
    """Work that is not waited for at once: small kernels leave most of the GPU to others. On a CPU all is done in turn.

    What is read beside must live until `join`: memory that was given back could be written to meanwhile. What is made
    beside may be read from then on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @contextmanager
    def work(self) -> Iterator[None]:
        """What runs in here comes after all that was asked for before, and is waited for in `join`."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            yield

    def join(self) -> None:
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)


_side_stream = cache(SideStream)  # one for each device


class DeferredGradients:
    """Gradients of weights in one way back, on which nothing waits: they fill what the other kernels leave idle."""

    def __init__(self, device: torch.device) -> None:
        self._beside = _side_stream(device)
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
