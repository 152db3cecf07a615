"""CUDA C++ compiled for the card at hand, on first use, by the compiler library that PyTorch brings along."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from cadr.kernels.disk_cache import cached


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
    return _loaded(torch.cuda.current_device(), sources, expression, shared, options, capability)


@cache
def _loaded(
    device: int,
    sources: tuple[Path, ...],
    expression: str,
    shared: int,
    options: tuple[str, ...],
    capability: str | None,
) -> Any:
    from torch.cuda._utils import _cuda_load_module

    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    capability = capability or "{}{}".format(*torch.cuda.get_device_capability(device))
    name, code = _compiled(text, expression, options, capability)
    modules: Any = _cuda_load_module(code, [name])
    loaded = modules[name]
    loaded.set_shared_memory_config(shared)
    return loaded


def _compiled(text: str, expression: str, options: tuple[str, ...], capability: str) -> tuple[str, bytes]:
    """Its name for the linker, and machine code. The kernels of a network take seconds: another run finds them made."""

    def make() -> bytes:
        from torch.cuda._utils import _nvrtc_compile

        code, name = _nvrtc_compile(text, expression, compute_capability=capability, nvcc_options=list(options))
        return name.encode() + b"\0" + code

    all_it_depends_on = repr((text, expression, options, capability, torch.__version__, torch.version.cuda))
    name, _, code = cached(sha256(all_it_depends_on.encode()).hexdigest(), make).partition(b"\0")
    return name.decode(), code
