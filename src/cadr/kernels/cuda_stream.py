"""A second stream of the GPU, beside the first. In a captured step the two are branches of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
