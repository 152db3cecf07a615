"""Calling a model: in the precision of the run, with or without a trace in batch norm, in training and to evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from cadr.kernels import wide_resnet
from cadr.metrics import confusion
from cadr.training.feed import Inputs
from cadr.utils import ranks

_ON_A_GPU, _ON_A_CORE = 6 * 2**20, 2**18  # numbers evaluated at once: 2048 images of 32×32, and what caches hold
_FEWEST = 16  # examples


def is_half(precision: str, device: torch.device) -> bool:
    """Whether a configured precision means bf16 on this device."""
    return precision == "bf16" or (precision == "auto" and device.type == "cuda")


def call(model: nn.Module, x: Tensor, half: bool) -> Tensor:
    """Logits in float32; the model runs under bf16 autocast unless it declares that it `handles_precision` itself."""
    if half and wide_resnet.applies(model, x):
        return wide_resnet.logits(model, x)
    autocast = half and not getattr(model, "handles_precision", False)
    with torch.autocast(x.device.type, torch.bfloat16, enabled=autocast):
        logits: Tensor = model(x)
    return logits.float()


def at_once(numbers: int, device: torch.device) -> int:
    """How many examples of so many numbers are best evaluated together."""
    most = _ON_A_GPU if device.type != "cpu" else min(_ON_A_GPU, _ON_A_CORE * torch.get_num_threads())
    return max(_FEWEST, most // numbers)


@torch.no_grad()
def evaluate(model: nn.Module, inputs: Inputs, half: bool) -> Tensor:
    """Confusion counts (C, C) on the test part; waits for the device once, at the end."""
    if inputs.test_examples is None or inputs.test_labels is None:
        raise ValueError("there is no test part")
    counts = torch.zeros(inputs.num_classes, inputs.num_classes, dtype=torch.int64, device=inputs.examples.device)
    start, own = 0, slice(ranks.number() if ranks.world() > 1 else 0, None, ranks.world())
    test_labels = inputs.test_labels[own]
    for logits in logits_of(model, inputs, inputs.test_examples[own], half):
        labels = test_labels[start : start + len(logits)]
        counts += confusion(labels, logits.argmax(1), inputs.num_classes)
        start += len(logits)
    return ranks.total(counts).cpu()


@torch.no_grad()
def logits_of(model: nn.Module, inputs: Inputs, examples: Tensor, half: bool) -> Iterator[Tensor]:
    """Logits, some examples at a time."""
    dtype = torch.bfloat16 if half else torch.float32
    for part in torch.split(examples, at_once(examples[0].numel(), examples.device)):
        yield call(model, inputs.ready(part, model, dtype), half)


class Network:
    """Calling it gives logits in training mode, as does `untracked`, which changes no buffer of the model.

    This is where ranks meet: each passes its own rows, and all have the logits of all.
    """

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
        if ranks.world() == 1:
            return call(self.model, x, self.half)
        return ranks.rows_of_all(call(self.model, ranks.own_rows(x), self.half), len(x))

    def _untracked(self, x: Tensor) -> Tensor:
        with _copied_buffers(self.model):
            return self._run(x)


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
