"""Calling a model in the precision of the run, in training and in evaluation alike."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from cadr.metrics import confusion
from cadr.models import fused
from cadr.train.inputs import Inputs

_PIXELS = 2**21  # evaluated at once: 2048 images of 32×32


def is_half(precision: str, device: torch.device) -> bool:
    """Whether a configured precision means bf16 on this device."""
    return precision == "bf16" or (precision == "auto" and device.type == "cuda")


def call(model: nn.Module, x: Tensor, half: bool) -> Tensor:
    """Logits in float32; the model runs under bf16 autocast unless it declares that it `handles_precision` itself."""
    if half and fused.applies(model, x):
        return fused.logits(model, x)
    autocast = half and not getattr(model, "handles_precision", False)
    with torch.autocast(x.device.type, torch.bfloat16, enabled=autocast):
        logits: Tensor = model(x)
    return logits.float()


@torch.no_grad()
def evaluate(model: nn.Module, inputs: Inputs, half: bool) -> Tensor:
    """Confusion counts (C, C) on the test part; waits for the device once, at the end."""
    if inputs.test_examples is None or inputs.test_labels is None:
        raise ValueError("there is no test part")
    counts = torch.zeros(inputs.num_classes, inputs.num_classes, dtype=torch.int64, device=inputs.examples.device)
    start = 0
    for logits in logits_of(model, inputs, inputs.test_examples, half):
        labels = inputs.test_labels[start : start + len(logits)]
        counts += confusion(labels, logits.argmax(1), inputs.num_classes)
        start += len(logits)
    return counts.cpu()


@torch.no_grad()
def logits_of(model: nn.Module, inputs: Inputs, examples: Tensor, half: bool) -> Iterator[Tensor]:
    """Logits, so many examples at a time as memory holds easily."""
    dtype = torch.bfloat16 if half else torch.float32
    size = max(64, _PIXELS // examples[0, ..., 0].numel())
    for part in torch.split(examples, size):
        yield call(model, inputs.ready(part, dtype), half)
