"""A computation recorded as a CUDA graph."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch


def capture(compute: Callable[[], None], put_back: Callable[[], None], device: torch.device) -> torch.cuda.CUDAGraph:
    """Replaying the graph does what `compute` does. What warming up changes is put back: a run does not notice."""
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            compute()
            put_back()
    torch.cuda.current_stream(device).wait_stream(side)
    gc.collect()  # a former run's graph that still waits for it would spoil this one, were it destroyed meanwhile
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    return graph
