"""Small work that a step need not wait for, on a second stream of the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Beside:
    """Dozens of tiny kernels take as long as a large one, but leave the GPU to others. On a CPU all is done in turn.

    What is read or made beside must live until `join`.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self._open = device, False
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    @contextmanager
    def work(self) -> Iterator[None]:
        """What runs in here comes after all that was asked for before, and is waited for in `join`."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        self._open = True
        with torch.cuda.stream(self._stream):
            yield

    def join(self) -> None:
        if self._stream is not None and self._open:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)
            self._open = False
