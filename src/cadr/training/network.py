"""Calling a model in the precision of the run, in training and in evaluation alike."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from cadr.kernels import wide_resnet
from cadr.metrics import confusion
from cadr.training.device_data import Inputs

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
    start = 0
    for logits in logits_of(model, inputs, inputs.test_examples, half):
        labels = inputs.test_labels[start : start + len(logits)]
        counts += confusion(labels, logits.argmax(1), inputs.num_classes)
        start += len(logits)
    return counts.cpu()


@torch.no_grad()
def logits_of(model: nn.Module, inputs: Inputs, examples: Tensor, half: bool) -> Iterator[Tensor]:
    """Logits, some examples at a time."""
    dtype = torch.bfloat16 if half else torch.float32
    for part in torch.split(examples, at_once(examples[0].numel(), examples.device)):
        yield call(model, inputs.ready(part, model, dtype), half)
