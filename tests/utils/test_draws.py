"""The counter-based random numbers: the published generator bit for bit, uniform, independent, reproducible."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from cadr.utils import random_numbers

WORD = (1 << 64) - 1


def splitmix64(state: int) -> int:
    """The finaliser in Python's own integers, masked to 64 bits."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WORD
    return state ^ (state >> 31)


def python_key(seed: int, step: int, stream: int) -> int:
    mixed = splitmix64((step + seed * 0xD1342543DE82EF95 + 1) & WORD)
    return splitmix64((mixed + (stream + 1) * 0x9E3779B97F4A7C15) & WORD)


def python_split(parent: int, stream: int) -> int:
    return splitmix64((parent + (stream + 1) * 0xA0761D6478BD642F) & WORD)


def python_uniform(drawn_by: int, count: int) -> list[float]:
    words = (splitmix64((drawn_by + i * 0x9E3779B97F4A7C15) & WORD) for i in range(1, count + 1))
    return [(word >> 40) / (1 << 24) for word in words]


def key(seed: int = 1, step: int = 0, stream: int = 0) -> torch.Tensor:
    return random_numbers.key(seed, torch.tensor(step), stream)


SEEDS = [0, 1, 17, 2**40 + 3, 2**63 + 5, -4]
CASES = [*itertools.product(SEEDS, [0, 1, 131071], [0, 1, 9])]


@pytest.mark.parametrize(("seed", "step", "stream"), CASES)
def test_keys_and_numbers_equal_arbitrary_precision_arithmetic(seed, step, stream):
    parent, expected = key(seed, step, stream), python_key(seed, step, stream)
    assert parent.dtype == torch.int64
    assert parent.shape == ()
    assert int(parent) & WORD == expected
    child, expected_child = random_numbers.split(parent, 4)[3], python_split(expected, 3)
    assert int(child) & WORD == expected_child
    assert random_numbers.uniform(parent, 7).tolist() == python_uniform(expected, 7)
    assert random_numbers.integers(child, 14, 7).tolist() == [int(u * 14) for u in python_uniform(expected_child, 7)]


def test_numbers_of_a_key_are_the_published_stream():
    """The reference output of SplitMix64 for the seed 1234567; a uniform number is the word's upper 24 bits."""
    words = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert random_numbers.uniform(torch.tensor(1234567), 5).tolist() == [(word >> 40) / (1 << 24) for word in words]


def test_normals_are_box_and_muller_of_two_split_streams():
    parent = python_key(5, 11, 2)
    first = python_uniform(python_split(parent, 0), 50)
    second = python_uniform(python_split(parent, 1), 50)
    pairs = zip(first, second, strict=True)
    expected = [math.sqrt(-2 * math.log1p(-u)) * math.cos(2 * math.pi * v) for u, v in pairs]
    np.testing.assert_allclose(
        random_numbers.normal(key(5, 11, 2), 5, 10).numpy().ravel(), expected, rtol=1e-5, atol=1e-5
    )


def test_shape_and_range():
    drawn = random_numbers.uniform(key(), 100, 4, 25)
    assert drawn.shape == (100, 4, 25)
    assert drawn.dtype == torch.float32
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert torch.equal(drawn.flatten(), random_numbers.uniform(key(), 10_000))
    assert random_numbers.uniform(key()).shape == ()
    whole = random_numbers.integers(key(), 14, 10_000)
    assert whole.dtype == torch.int64
    assert sorted(set(whole.tolist())) == list(range(14))


def test_several_keys_draw_what_each_of_them_draws():
    parents = random_numbers.keys(1, torch.tensor(4), 3)
    children = random_numbers.split(parents, 2)
    assert children.shape == (3, 2)
    for parent, pair in zip(parents, children, strict=True):
        assert torch.equal(pair, random_numbers.split(parent, 5)[:2])
    drawn = random_numbers.uniform(children, 4, 5)
    assert drawn.shape == (3, 2, 4, 5)
    for numbers, child in zip(drawn.flatten(0, 1), children.flatten(), strict=True):
        assert torch.equal(numbers, random_numbers.uniform(child, 4, 5))
    assert random_numbers.split(parents[0], 0).shape == (0,)


def p_uniform(values: np.ndarray, cells: int) -> float:
    counts = np.bincount((values * cells).astype(int), minlength=cells)
    return float(stats.chisquare(counts).pvalue)


# With fixed seeds a test passes always or never; 1e-4 leaves room for the number of them.
@pytest.mark.parametrize("seed", range(3))
def test_uniform_by_chi_square(seed):
    assert p_uniform(random_numbers.uniform(key(seed), 100_000).double().numpy(), 256) > 1e-4
    # One number of each of many steps, streams, seeds or children: what a training run consumes.
    by_step = np.array([random_numbers.uniform(key(seed, i, 0), 1).item() for i in range(1500)])
    assert p_uniform(by_step, 20) > 1e-4
    by_stream = np.array([random_numbers.uniform(key(seed, 0, i), 1).item() for i in range(1500)])
    assert p_uniform(by_stream, 20) > 1e-4
    by_seed = np.array([random_numbers.uniform(key(seed + i, 0, 0), 1).item() for i in range(1500)])
    assert p_uniform(by_seed, 20) > 1e-4
    by_child = random_numbers.uniform(random_numbers.split(key(seed), 1500), 1).flatten().numpy()
    assert p_uniform(by_child, 20) > 1e-4


@pytest.mark.parametrize("high", [2, 3, 14, 1000])
def test_integers_by_chi_square(high):
    counts = np.bincount(random_numbers.integers(key(3), high, 200_000).numpy(), minlength=high)
    assert len(counts) == high
    assert stats.chisquare(counts).pvalue > 1e-4


NEIGHBOURS = {
    "the next step": (key(1, 7, 2), key(1, 8, 2)),
    "the next stream": (key(1, 7, 2), key(1, 7, 3)),
    "the next seed": (key(1, 7, 2), key(2, 7, 2)),
    "step and stream exchanged": (key(1, 3, 5), key(1, 5, 3)),
    "seed and step exchanged": (key(3, 5, 0), key(5, 3, 0)),
    "siblings": tuple(random_numbers.split(key(), 2)),
    "parent and child": (key(), random_numbers.split(key(), 1)[0]),
    "grandchildren": (
        random_numbers.split(random_numbers.split(key(), 1)[0], 2)[1],
        random_numbers.split(random_numbers.split(key(), 2)[1], 1)[0],
    ),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_keys_draw_independent_numbers(name):
    """Pairs of numbers fill a 16 × 16 table evenly and do not correlate, at lag zero and shifted by one."""
    first, second = (random_numbers.uniform(k, 100_000).double().numpy() for k in NEIGHBOURS[name])
    for left, right in ((first, second), (first[:-1], second[1:]), (first[1:], second[:-1])):
        cells = (left * 16).astype(int) * 16 + (right * 16).astype(int)
        assert stats.chisquare(np.bincount(cells, minlength=256)).pvalue > 1e-4
        assert abs(np.corrcoef(left, right)[0, 1]) < 4.5 / math.sqrt(len(left))


def test_consecutive_numbers_of_one_key_are_independent():
    drawn = random_numbers.uniform(key(9), 200_001).double().numpy()
    cells = (drawn[:-1] * 16).astype(int) * 16 + (drawn[1:] * 16).astype(int)
    assert stats.chisquare(np.bincount(cells[::2], minlength=256)).pvalue > 1e-4


def test_keys_do_not_collide():
    steps = torch.arange(2000)
    keys = [random_numbers.key(seed, steps, stream) for seed in range(8) for stream in range(8)]
    assert len(torch.cat(keys).unique()) == 8 * 8 * 2000


def test_the_same_arguments_draw_the_same_numbers_whatever_was_drawn_before():
    before = random_numbers.uniform(key(4, 2, 1), 64)
    torch.manual_seed(0)
    random_numbers.normal(key(4, 2, 1), 1000)
    assert torch.equal(random_numbers.uniform(key(4, 2, 1), 64), before)
    assert torch.equal(random_numbers.uniform(key(4, 2, 1), 1000)[:64], before)


def test_the_global_generator_is_left_alone():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    random_numbers.normal(key(), 100)
    random_numbers.integers(key(), 5, 100)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("seed", range(3))
def test_normal_moments(seed):
    """Mean, variance, skewness and kurtosis within 4.5 standard errors, and the shape by Kolmogorov and Smirnov."""
    count = 200_000
    drawn = random_numbers.normal(key(seed), count).double().numpy()
    assert np.isfinite(drawn).all()
    errors = {1: 1.0, 2: math.sqrt(2.0), 3: math.sqrt(15.0), 4: math.sqrt(96.0)}  # sd of xᵏ
    expected = {1: 0.0, 2: 1.0, 3: 0.0, 4: 3.0}
    for power, sd in errors.items():
        assert abs((drawn**power).mean() - expected[power]) < 4.5 * sd / math.sqrt(count)
    assert stats.kstest(drawn, "norm").pvalue > 1e-4


def test_normals_stay_finite_at_the_ends_of_the_uniform_numbers(monkeypatch):
    """The largest uniform number is 1 − 2⁻²⁴: −log1p(−u) must not be infinite there, nor at zero."""
    for end in (0.0, 1.0 - 2.0**-24):
        monkeypatch.setattr(random_numbers, "uniform", lambda by, *shape, end=end: torch.full((*by.shape, *shape), end))
        assert torch.isfinite(random_numbers.normal(key(), 3)).all()
