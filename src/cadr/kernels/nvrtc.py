"""CUDA C++ compiled for the card at hand, on first use, by the compiler library that PyTorch brings along.

What takes seconds to compile is kept in the user's cache folder for the next process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from cadr.utils.files import cache_folder

_DIGEST = 32


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """What `make` once returned under this name, which must say all that it depends on.

    Nothing has to be there: without a folder that can be written, or with a damaged file in it, it is made again.
    """
    folder = cache_folder()
    if folder is None:
        return make()
    path = folder / name
    with suppress(OSError):
        content = path.read_bytes()
        if sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            return content[_DIGEST:]
    made = make()
    with suppress(OSError):
        _write(path, sha256(made).digest() + made)
    return made


def _write(path: Path, content: bytes) -> None:
    """Under a name of this process alone first: others may be writing the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        new.replace(path)
    except BaseException:
        new.unlink()
        raise


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
