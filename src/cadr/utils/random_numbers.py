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
_CHILD = _signed(0xA0761D6478BD642F)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def _shift_right(bits: Tensor, by: int) -> Tensor:
    return (bits >> by).bitwise_and_((1 << (64 - by)) - 1)  # logical, not arithmetic


def _half_mixed(bits: Tensor) -> Tensor:
    """All but the finaliser's last line, which leaves the upper 31 bits as they are."""
    for by, factor in ((30, _MIX_1), (27, _MIX_2)):
        bits = _shift_right(bits, by).bitwise_xor_(bits).mul_(factor)
    return bits


def _mix(bits: Tensor) -> Tensor:
    bits = _half_mixed(bits)
    return _shift_right(bits, 31).bitwise_xor_(bits)


def _apart(start: Tensor, n: int, distance: int) -> Tensor:
    """(…, n) at 1, 2, … times a distance from where each starts. The xor changes nothing but keeps the compiler's hands
    off: it would compute the product as an index, in 32 bits."""
    places = torch.arange(1, n + 1, device=start.device, dtype=torch.int64) ^ 0
    return torch.add(start.unsqueeze(-1), places, alpha=distance)


def keys(seed: int, step: Tensor, streams: int) -> Tensor:
    """A key for each stream 0, 1, … of a step; `step` is an int64 scalar tensor on the device that will draw."""
    mixed = _mix(step + _signed((seed * 0xD1342543DE82EF95 + 1) % (1 << 64)))
    return _mix(_apart(mixed, streams, _GOLDEN))


def key(seed: int, step: Tensor, stream: int) -> Tensor:
    """The key of one stream."""
    return keys(seed, step, stream + 1)[..., stream]


def split(parent: Tensor, streams: int) -> Tensor:
    """Independent keys derived from another: one for each stream 0, 1, …, however many there are."""
    return _mix(_apart(parent, streams, _CHILD))


def uniform(drawn_by: Tensor, *shape: int) -> Tensor:
    """float32 in [0, 1) with 24 random bits each; of several keys, so many numbers each."""
    bits = _half_mixed(_apart(drawn_by, math.prod(shape), _GOLDEN))
    return (_shift_right(bits, 40).to(torch.float32) * 2.0**-24).reshape(drawn_by.shape + shape)


def integers(drawn_by: Tensor, high: int, *shape: int) -> Tensor:
    """int64 in {0, …, high − 1}; `high` must be far below 2^24."""
    return (uniform(drawn_by, *shape) * high).to(torch.int64).clamp_(max=high - 1)


def normal(drawn_by: Tensor, *shape: int) -> Tensor:
    """Standard normal float32 (Box and Muller)."""
    first, second = uniform(split(drawn_by, 2), *shape)
    return torch.sqrt(-2.0 * torch.log1p(-first)) * torch.cos(2.0 * math.pi * second)


_ROUNDS = 12  # each accepts with probability 0.95 or more: one number in 10^15 is not a draw but a constant


def log_gamma(drawn_by: Tensor, shape: float, *size: int) -> Tensor:
    """The logarithm of Gamma(shape, 1) variables (Marsaglia and Tsang, 2000), with a fixed number of rounds."""
    # Below one: Gamma(a) = Gamma(a + 1) · U^(1/a), as a sum of logarithms, because the product underflows.
    d = (shape if shape >= 1 else shape + 1) - 1 / 3
    by_normals, by_chances, by_root = split(drawn_by, 3)
    normals = normal(by_normals, _ROUNDS, *size)
    chances = uniform(by_chances, _ROUNDS, *size)
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
    return drawn + (uniform(by_root, *size) + 2.0**-25).log() / shape


def beta(drawn_by: Tensor, a: float, b: float, *size: int) -> Tensor:
    """Beta(a, b) in float32."""
    first, second = split(drawn_by, 2)
    return torch.sigmoid(log_gamma(first, a, *size) - log_gamma(second, b, *size))


def permutation(drawn_by: Tensor, n: int) -> Tensor:
    """A random order of 0 … n − 1."""
    return torch.argsort(uniform(drawn_by, n), stable=True)
