"""Muon (Jordan et al., 2024): orthogonalised momentum for hidden kernels, Nesterov SGD for all others.

A kernel's update is brought near the closest matrix with orthonormal rows, so that directions in which gradients are
small, those of rare classes among them, are followed as far as the large ones. A convolution's kernel is the matrix
(outputs, inputs · taps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cadr.kernels.cuda_stream import SideStream
from cadr.optim.base import Update
from cadr.optim.flat_parameters import Flat
from cadr.optim.sgd import SGD
from cadr.utils.options import at_least, option, share

A, B, C = 3.4445, -4.7750, 2.0315  # of Newton and Schulz's polynomial: steepest at zero, at the cost of a rough one
ITERATIONS = 5
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_LEAST_ROWS = 32  # matrices with fewer are padded: one product more would take longer than the zeros
_MOST_PADDING = 16  # times a matrix's own columns


@dataclass(frozen=True)
class Muon(SGD):
    """Orthogonalised momentum for hidden kernels; first convolution, last layer, biases and norms as with SGD.

    Its rate falls to zero, so that a short run ends where it has converged.
    """

    cosine: float = option(0.5, "share of half a turn that the learning rate's cosine runs through")
    muon_lr: float = option(0.02, "size of a hidden kernel's update at the first step")
    muon_decay: float = option(0.05, "decoupled decay of hidden kernels, as a share of their rate")
    muon_momentum: float = option(0.95, "momentum of hidden kernels")

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self.muon_lr, 0.0, "muon_lr")
        at_least(self.muon_decay, 0.0, "muon_decay")
        share(self.muon_momentum, "muon_momentum")

    def hidden(self, model: nn.Module) -> frozenset[str]:
        return hidden_kernels(model)

    def begin(self, flat: Flat, weights: Tensor, gradient: Tensor, velocity: Tensor) -> Update:
        others = super().begin(flat, weights, gradient, velocity)
        weights, gradient, momentum = weights[: flat.hidden], gradient[: flat.hidden], velocity[: flat.hidden]
        matrices = Matrices(flat, weights.device)
        rates = flat.rates(weights.device)
        rates = None if rates is None else rates[: flat.hidden]

        def update(factor: Tensor) -> None:
            with matrices.beside.work():
                others(factor)
            momentum.lerp_(gradient, 1.0 - self.muon_momentum)
            steps = matrices.orthogonalised(torch.lerp(gradient, momentum, self.muon_momentum))
            rate = (self.muon_lr * factor).to(weights.dtype)
            rate = rate if rates is None else rate * rates
            weights.mul_(1.0 - rate * self.muon_decay).addcmul_(steps, rate, value=-1.0)
            matrices.beside.join()

        return update


def averaged_over(steps: int) -> float:
    """The decay of an average of the weights over a twentieth of a run, a thousand steps at most."""
    return round(min(max(1.0 - 20.0 / steps, 0.5), 0.999), 4)


def hidden_kernels(model: nn.Module) -> frozenset[str]:
    """Kernels of linear layers and convolutions without groups, but for a first convolution and the last layer.

    What is shared with another kind of layer, as an embedding is, is none.
    """
    layers = [(name, layer) for name, layer in model.named_modules() if _own_kernels(layer)]
    hidden: dict[nn.Parameter, str] = {}
    owners: dict[nn.Parameter, list[bool]] = {}
    for number, (name, layer) in enumerate(layers):
        outer = number == len(layers) - 1 or (number == 0 and isinstance(layer, _CONVOLUTIONS))
        fits = isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d) and getattr(layer, "groups", 1) == 1
        for key, kernel in _own_kernels(layer).items():
            owners.setdefault(kernel, []).append(fits and not outer and key == "weight" and _by_outputs(kernel))
            hidden.setdefault(kernel, f"{name}.{key}" if name else key)
    return frozenset(name for kernel, name in hidden.items() if all(owners[kernel]))


def _own_kernels(layer: nn.Module) -> dict[str, nn.Parameter]:
    return {key: p for key, p in layer.named_parameters(recurse=False) if p.ndim >= 2 and p.requires_grad}


def _by_outputs(kernel: Tensor) -> bool:
    """Whether an output's numbers lie together, in whatever order: a matrix's columns may be exchanged."""
    return kernel.shape[0] == 1 or kernel.stride(0) * kernel.shape[0] == kernel.numel()


class _Matrix(NamedTuple):
    offset: int  # in the flat tensor
    outputs: int
    inputs: int

    @property
    def rows(self) -> int:
        return min(self.outputs, self.inputs)

    @property
    def columns(self) -> int:
        return max(self.outputs, self.inputs)


class Matrices:
    """The hidden kernels as a few stacks of matrices that are no taller than wide, smaller ones padded with zeros.

    Zeros stay zeros in Newton and Schulz's iterations and change nothing else. A step of a small network is otherwise
    some hundreds of tiny products, one shape after another.
    """

    def __init__(self, flat: Flat, device: torch.device) -> None:
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.shapes: list[tuple[int, int, int]] = []
        parts, scales = [], torch.zeros(flat.hidden)
        back = torch.zeros(flat.hidden, dtype=torch.int64)  # where a number of the flat tensor is in the stacks
        begin = 0
        for group in _groups([_Matrix(place.offset, *_sides(place.shape)) for place in flat.hidden_places]):
            rows, columns = max(m.rows for m in group), max(m.columns for m in group)
            stack = torch.full((len(group), rows, columns), flat.hidden)  # the number behind the last: a zero
            for matrix, target in zip(group, stack, strict=True):
                source = matrix.offset + torch.arange(matrix.outputs * matrix.inputs).view(matrix.outputs, -1)
                target[: matrix.rows, : matrix.columns] = source.T if matrix.outputs > matrix.inputs else source
                scales[source] = math.sqrt(max(1.0, matrix.outputs / matrix.inputs))
            inside = (numbers := stack.flatten()) < flat.hidden
            back[numbers[inside]] = begin + inside.nonzero().squeeze(1)
            self.shapes.append((len(group), rows, columns))
            parts.append(numbers)
            begin += stack.numel()
        self._there = torch.cat([torch.empty(0, dtype=torch.int64), *parts]).to(device, torch.int32)
        self._back, self._scales = back.to(device, torch.int32), scales.to(device)
        self._zero = torch.zeros(1, device=device)
        self._streams = [SideStream(device) for _ in self.shapes[1:]]
        self.beside = SideStream(device)

    def orthogonalised(self, update: Tensor) -> Tensor:
        """The flat update with the matrices in it orthogonalised, and scaled by √(outputs / inputs) where over 1."""
        if not self.shapes:
            return update
        packed = torch.cat((update, self._zero)).index_select(0, self._there)
        stacks = torch.split(packed, [math.prod(shape) for shape in self.shapes])
        done: list[Tensor] = []
        for stack, shape, stream in zip(stacks[1:], self.shapes[1:], self._streams, strict=True):
            with stream.work():
                done.append(orthogonalise(stack.view(shape), self.dtype))
        done.insert(0, orthogonalise(stacks[0].view(self.shapes[0]), self.dtype))
        for stream in self._streams:
            stream.join()
        return torch.cat([stack.flatten() for stack in done]).index_select(0, self._back) * self._scales


def orthogonalise(matrices: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Matrices that are no taller than wide, with singular values brought to about 0.7 to 1.2, but for tiny ones."""
    norms = matrices.norm(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    x: Tensor = (matrices / norms).to(dtype)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return x.float()


def _sides(shape: torch.Size) -> tuple[int, int]:
    return shape[0], shape.numel() // shape[0]


def _groups(matrices: list[_Matrix]) -> list[list[_Matrix]]:
    """Those that one product takes together: rows up to the same power of two, columns not too far apart."""
    groups: list[list[_Matrix]] = []
    last = None
    for matrix in sorted(matrices, key=lambda m: (_height(m), -m.columns)):
        widest = groups[-1][0].columns if groups else 0
        if _height(matrix) != last or matrix.columns * _MOST_PADDING < widest:
            groups.append([])
        groups[-1].append(matrix)
        last = _height(matrix)
    return sorted(groups, key=lambda group: -sum(m.rows**2 * m.columns for m in group))


def _height(matrix: _Matrix) -> int:
    return max(_LEAST_ROWS, 1 << (matrix.rows - 1).bit_length())
