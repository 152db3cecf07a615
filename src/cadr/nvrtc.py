"""CUDA C++ compiled for the card at hand, on first use, by the compiler library that PyTorch brings along."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch


def kernel(
    sources: tuple[Path, ...],
    expression: str,
    shared: int = 0,
    options: tuple[str, ...] = (),
    capability: str | None = None,
) -> Any:
    """The kernel that `expression` names (a function, or an instance of a template), with `shared` bytes to use.

    It runs on the current device. `capability` is the card's unless given: "90a" is a Hopper card with what later cards
    do not have.
    """
    return _compiled(torch.cuda.current_device(), sources, expression, shared, options, capability)


@cache
def _compiled(
    device: int,
    sources: tuple[Path, ...],
    expression: str,
    shared: int,
    options: tuple[str, ...],
    capability: str | None,
) -> Any:
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    compiled = torch.cuda._compile_kernel(text, expression, compute_capability=capability, nvcc_options=list(options))
    compiled.set_shared_memory_config(shared)
    return compiled
