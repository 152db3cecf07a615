"""The random orders are pinned: these numbers may never change."""

import hashlib

import numpy as np
import pytest

from cadr.data import shuffle
from cadr.errors import ProtocolError

WORD = (1 << 64) - 1


def slow_mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def slow_bits(seed, stream, n):
    """SplitMix64 in Python's own whole numbers."""
    start = slow_mix(seed ^ (((stream + 1) * 0xD1342543DE82EF95) & WORD))
    return [slow_mix((start + i * 0x9E3779B97F4A7C15) & WORD) for i in range(1, n + 1)]


@pytest.mark.parametrize(("seed", "stream"), [(0, 0), (1, 0), (1, 3), ((1 << 63) - 1, 2)])
def test_bits_are_splitmix64(seed, stream):
    assert shuffle.bits(seed, stream, 100).tolist() == slow_bits(seed, stream, 100)


def test_published_values_of_splitmix64():
    # The first outputs for the state 1234567, from the reference implementation's test vectors.
    outputs = [slow_mix((1234567 + i * 0x9E3779B97F4A7C15) & WORD) for i in range(1, 4)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_golden_order():
    assert shuffle.order(1, 0, 10).tolist() == [7, 5, 9, 3, 8, 4, 2, 0, 1, 6]
    digest = hashlib.sha256(shuffle.order(7, 0, 50_000).astype("<i8").tobytes()).hexdigest()
    assert digest == "7cde613e6ff5b629361084a18ecca54e586c3ac42903829a2d5b8dbcda64be0c"


def test_order_is_a_permutation_and_uniform_is_in_range():
    assert sorted(shuffle.order(3, 1, 1000).tolist()) == list(range(1000))
    drawn = shuffle.uniform(3, 1, 100_000)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 100_000)


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1.5, True, "1", None])
def test_seed_is_a_whole_number(seed):
    with pytest.raises(ProtocolError, match="seed"):
        shuffle.bits(seed, 0, 3)
