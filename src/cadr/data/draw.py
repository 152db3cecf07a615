"""Random numbers as a pure function of (seed, step, stream, position).

Nothing is advanced and nothing has to be saved: the same step draws the same numbers on a CPU, on a GPU, inside a
captured graph and after a restart. The mixing is SplitMix64's finaliser (Steele, Lea and Flood, 2014).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def _signed(value: int) -> int:
    """The int64 with the same 64 bits, since torch has no uint64 arithmetic."""
    return value - (1 << 64) if value >= 1 << 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def _shift_right(bits: Tensor, by: int) -> Tensor:
    return (bits >> by) & ((1 << (64 - by)) - 1)  # logical, not arithmetic


def _mix(bits: Tensor) -> Tensor:
    bits = (bits ^ _shift_right(bits, 30)) * _MIX_1
    bits = (bits ^ _shift_right(bits, 27)) * _MIX_2
    return bits ^ _shift_right(bits, 31)


def _positions(n: int, device: torch.device) -> Tensor:
    """1, 2, … times the golden ratio. The xor changes nothing but keeps the compiler's hands off: it would compute the
    product as an index, in 32 bits."""
    return (torch.arange(1, n + 1, device=device, dtype=torch.int64) ^ 0) * _GOLDEN


def keys(seed: int, step: Tensor, streams: int) -> Tensor:
    """A key for each stream 0, 1, … of a step; `step` is an int64 scalar tensor on the device that will draw."""
    mixed = _mix(step + _signed((seed * 0xD1342543DE82EF95 + 1) % (1 << 64)))
    return _mix(mixed[..., None] + _positions(streams, step.device))


def key(seed: int, step: Tensor, stream: int) -> Tensor:
    """The key of one stream."""
    return keys(seed, step, stream + 1)[..., stream]


def split(parent: Tensor, stream: int) -> Tensor:
    """An independent key derived from another."""
    return _mix(parent + _signed(((stream + 1) * 0xA0761D6478BD642F) % (1 << 64)))


def uniform(drawn_by: Tensor, *shape: int) -> Tensor:
    """float32 in [0, 1) with 24 random bits each."""
    bits = _mix(drawn_by + _positions(math.prod(shape), drawn_by.device))
    return (_shift_right(bits, 40).to(torch.float32) * 2.0**-24).reshape(shape)


def integers(drawn_by: Tensor, high: int, *shape: int) -> Tensor:
    """int64 in {0, …, high − 1}; `high` must be far below 2^24."""
    return (uniform(drawn_by, *shape) * high).to(torch.int64).clamp_(max=high - 1)


def normal(drawn_by: Tensor, *shape: int) -> Tensor:
    """Standard normal float32 (Box and Muller)."""
    radius = torch.sqrt(-2.0 * torch.log1p(-uniform(split(drawn_by, 0), *shape)))
    return radius * torch.cos(2.0 * math.pi * uniform(split(drawn_by, 1), *shape))


_ROUNDS = 12  # each accepts with probability 0.95 or more: one number in 10^15 is not a draw but a constant


def log_gamma(drawn_by: Tensor, shape: float, *size: int) -> Tensor:
    """The logarithm of Gamma(shape, 1) variables (Marsaglia and Tsang, 2000), with a fixed number of rounds."""
    # Below one: Gamma(a) = Gamma(a + 1) · U^(1/a), as a sum of logarithms, because the product underflows.
    d = (shape if shape >= 1 else shape + 1) - 1 / 3
    normals = normal(split(drawn_by, 0), _ROUNDS, *size)
    chances = uniform(split(drawn_by, 1), _ROUNDS, *size)
    cubes = (1 + normals / math.sqrt(9 * d)) ** 3
    positive = cubes > 0
    cubes = torch.where(positive, cubes, 1.0)
    accepted = positive & (chances.log() < 0.5 * normals**2 + d - d * cubes + d * cubes.log())
    value = torch.ones_like(cubes[0])
    for turn in reversed(range(_ROUNDS)):  # the first accepted one is kept
        value = torch.where(accepted[turn], cubes[turn], value)
    drawn = math.log(d) + value.log()
    if shape >= 1:
        return drawn
    return drawn + (uniform(split(drawn_by, 2), *size) + 2.0**-25).log() / shape


def beta(drawn_by: Tensor, a: float, b: float, *size: int) -> Tensor:
    """Beta(a, b) in float32."""
    return torch.sigmoid(log_gamma(split(drawn_by, 0), a, *size) - log_gamma(split(drawn_by, 1), b, *size))


def permutation(drawn_by: Tensor, n: int) -> Tensor:
    """A random order of 0 … n − 1."""
    return torch.argsort(uniform(drawn_by, n), stable=True)
