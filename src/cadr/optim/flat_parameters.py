"""A module's parameters as views into one tensor, so that optimiser and average are a handful of operations."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cadr.errors import ConfigError

_ALIGNMENT = 64  # elements: every parameter starts at a multiple of 256 bytes, as it would in memory of its own


class Slot(NamedTuple):
    offset: int
    shape: torch.Size


class Flat:
    """Where each trainable parameter lies in a flat tensor: kernels first, then biases and normalisation.

    Of the kernels, the `hidden` ones lie before the others.
    """

    def __init__(self, model: nn.Module, hidden: AbstractSet[str] = frozenset()) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        if not named:
            raise ConfigError("The model has no trainable parameters, so there is nothing to train.")
        for name, p in named:
            if p.dtype != torch.float32:
                raise ConfigError(f"The model's parameters must be float32, but {name} is {p.dtype}.")
        named.sort(key=lambda item: (item[0] not in hidden, item[1].ndim < 2))  # stable: else in the model's order
        self.names = [name for name, _ in named]
        self._rates: dict[str, float] = getattr(model, "learning_rates", {})
        self._layout = [(p.shape, p.stride()) if _dense(p) else (p.shape, None) for _, p in named]
        self._offsets: list[int] = []
        self.size = self.hidden = self.decayed = 0  # `hidden` and `decayed`: where hidden kernels and all kernels end
        for name, p in named:
            self._offsets.append(self.size)
            self.size += -(-p.numel() // _ALIGNMENT) * _ALIGNMENT
            if p.ndim >= 2:
                self.decayed = self.size
            if name in hidden:
                self.hidden = self.size
        self.hidden_places = [
            Slot(o, p.shape) for o, (name, p) in zip(self._offsets, named, strict=True) if name in hidden
        ]

    def views(self, flat: Tensor) -> list[Tensor]:
        """One tensor per parameter, in the parameter's shape and memory order, all sharing the flat one's memory."""
        return [
            flat[offset : offset + shape.numel()].view(shape)
            if stride is None
            else flat.as_strided(shape, stride, offset)
            for offset, (shape, stride) in zip(self._offsets, self._layout, strict=True)
        ]

    def rates(self, device: torch.device) -> Tensor | None:
        """Each number's share of the learning rate, where the model's layers have several; else None."""
        if all(self._rates.get(name, 1.0) == 1.0 for name in self.names):
            return None
        flat = torch.ones(self.size)
        for name, view in zip(self.names, self.views(flat), strict=True):
            view.fill_(self._rates.get(name, 1.0))
        return flat.to(device)

    def collect(self, flat: Tensor, values: Sequence[Tensor]) -> None:
        """Copy one tensor per parameter into the flat one: in one launch where the memory orders agree."""
        targets, sources = [], []
        for offset, (shape, stride), value in zip(self._offsets, self._layout, values, strict=True):
            targets.append(flat[offset : offset + shape.numel()])
            if value.stride() != (stride or _contiguous(shape)):
                value = torch.empty_strided(shape, stride or _contiguous(shape), device=flat.device).copy_(value)
            sources.append(value.as_strided((shape.numel(),), (1,)))
        torch._foreach_copy_(targets, sources)

    def adopt(self, model: nn.Module) -> tuple[Tensor, list[nn.Parameter]]:
        """Move the model's parameters into a new flat tensor; returns it and them, in this order."""
        parameters = dict(model.named_parameters())
        ordered = [parameters[name] for name in self.names]
        flat = torch.zeros(self.size, device=ordered[0].device)
        for parameter, view in zip(ordered, self.views(flat), strict=True):
            view.copy_(parameter.detach())
            parameter.data = view
        return flat, ordered


def _contiguous(shape: torch.Size) -> tuple[int, ...]:
    return torch.empty(shape, device="meta").stride()


def _dense(p: Tensor) -> bool:
    """Whether the elements fill their memory without gaps, in whatever order of dimensions (channels last, say)."""
    strides = sorted((stride, size) for stride, size in zip(p.stride(), p.shape, strict=True) if size > 1)
    expected = 1
    for stride, size in strides:
        if stride != expected:
            return False
        expected *= size
    return True
