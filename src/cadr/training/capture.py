"""A computation handed to torch.compile, or recorded as a CUDA graph."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from cadr.errors import ConfigError
from cadr.utils import ranks

_COMPILER = ("torch._dynamo.", "torch._inductor.")  # their errors, which take seconds to import


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
    # NCCL has a thread of its own, which must not spoil the capture
    mode = "thread_local" if ranks.world() > 1 else "global"
    with torch.cuda.graph(graph, capture_error_mode=mode):
        compute()
    return graph


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, dynamic=False)


@contextmanager
def explained() -> Iterator[None]:
    """What is compiled is compiled when it is first called."""
    try:
        yield
    except RuntimeError as error:
        if not type(error).__module__.startswith(_COMPILER):
            raise
        why = str(getattr(error, "inner_exception", error)).strip().partition("\n")[0]
        raise ConfigError(f"torch.compile does not work here ({why}); train without it: --compile none.") from None
