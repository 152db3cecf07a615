"""torch.compile, and a sentence where it cannot work: it needs a C++ compiler and a folder to write to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from cadr.errors import ConfigError

_COMPILER = ("torch._dynamo.", "torch._inductor.")  # their errors, which take seconds to import


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
