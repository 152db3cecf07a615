"""The model as an algorithm calls it: one pass, or one that leaves the running statistics alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cadr.training.network import call


class Network:
    """Calling it gives logits in training mode, as does `untracked`, which changes no buffer of the model."""

    def __init__(self, model: nn.Module, half: bool) -> None:
        self.model, self.half = model, half
        self.run: Callable[[Tensor], Tensor] = self._run
        self.untracked: Callable[[Tensor], Tensor] = self._untracked

    def hide(self, whole: bool) -> None:
        """Keep torch.compile out of what it should not look into: the exchange of buffers, or every pass."""
        self.untracked = torch.compiler.disable(self._untracked)  # type: ignore[no-untyped-call]
        if whole:
            self.run = torch.compiler.disable(self._run)  # type: ignore[no-untyped-call]

    def __call__(self, x: Tensor) -> Tensor:
        return self.run(x)

    def _run(self, x: Tensor) -> Tensor:
        return call(self.model, x, self.half)

    def _untracked(self, x: Tensor) -> Tensor:
        with _copied_buffers(self.model):
            return call(self.model, x, self.half)


@contextmanager
def _copied_buffers(model: nn.Module) -> Iterator[None]:
    """Let the model work on copies of its buffers. Putting the old values back would be a change that the backward
    pass of an earlier call may refuse; a copy that is dropped is none."""
    kept = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
    try:
        for module, buffers in kept:
            module._buffers.update({k: None if b is None else b.clone() for k, b in buffers.items()})
        yield
    finally:
        for module, buffers in kept:
            module._buffers.update(buffers)
