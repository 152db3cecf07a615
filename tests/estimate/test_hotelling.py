"""Hotelling's T² against its definition and the F distribution; the permutation test's size and power."""

import numpy as np
import pytest
from scipy import stats

from cadr.estimate.hotelling import hotelling_test


def definition(x, flags):
    """n_a n_b/(n_a + n_b) · d' S⁻¹ d with the pooled covariance, and the p-value of the F distribution."""
    a, b, k = x[flags], x[~flags], x.shape[1]
    pooled = ((len(a) - 1) * np.cov(a.T) + (len(b) - 1) * np.cov(b.T)) / (len(x) - 2)
    d = a.mean(0) - b.mean(0)
    t2 = len(a) * len(b) / len(x) * d @ np.linalg.solve(pooled, d)
    return t2, stats.f.sf(t2 * (len(x) - k - 1) / ((len(x) - 2) * k), k, len(x) - k - 1)


def data(seed, shift=0.0, n=200, flagged=60):
    random = np.random.default_rng(seed)
    flags = np.arange(n) < flagged
    x = random.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.3], [0.1, 0.0, 0.5]])
    return x + shift * flags[:, None] * np.array([1.0, 0.0, 0.0]), flags, random


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_matches_definition_and_f_distribution(shift):
    for seed in range(5):
        x, flags, random = data(seed, shift)
        expected, p = definition(x, flags)
        found = hotelling_test(x, flags, np.zeros(len(x), dtype=np.int64), 999, random)
        assert found.statistic == pytest.approx(expected)
        assert found.p_value == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 999) + 0.002)


def test_columns_that_sum_to_one_are_no_obstacle():
    x, flags, random = data(0, 0.3)
    padded = np.column_stack([x, 1.0 - x.sum(1)])
    found = hotelling_test(padded, flags, np.zeros(len(x), dtype=np.int64), 1, random)
    assert found.statistic == pytest.approx(definition(x, flags)[0])


def test_either_side_may_be_the_larger():
    x, flags, _ = data(1, 0.3)
    groups = np.arange(len(x)) % 2
    one, other = (hotelling_test(x, f, groups, 99, np.random.default_rng(0)) for f in (flags, ~flags))
    assert one == other


def test_differences_between_groups_do_not_count():
    """Labelled rows crowd into one group whose values are all higher: no reason to reject."""
    x, _, random = data(2)
    groups = np.repeat([0, 1], 100)
    flags = np.concatenate([np.arange(100) < 80, np.arange(100) < 20])
    alike = hotelling_test(x + 5.0 * groups[:, None], flags, groups, 499, random)
    assert hotelling_test(x + 5.0 * groups[:, None], flags, np.zeros_like(groups), 499, random).p_value < 0.01
    assert alike.p_value > 0.05


def test_differences_between_groups_hide_nothing():
    """Each fold's classifier may have a level of its own: what the rows of one fold say of each other stays."""
    x, flags, _ = data(3, shift=0.5)
    groups = np.arange(len(x)) % 3
    level = np.array([[0.0, 0.0, 0.0], [4.0, -1.0, 2.0], [-3.0, 5.0, 1.0]])[groups]
    plain, apart = (hotelling_test(v, flags, groups, 99, np.random.default_rng(0)) for v in (x, x + level))
    assert apart.statistic == pytest.approx(plain.statistic)
    assert apart.p_value == plain.p_value


def test_size_and_power():
    """5 % of false alarms (binomial, 300 runs: standard error 1.3 points); a clear shift is always seen."""
    groups = np.arange(80) % 2
    rejected = []
    for seed in range(300):
        x, flags, random = data(seed, n=80, flagged=25)
        rejected.append(hotelling_test(x, random.permutation(flags), groups, 59, random).p_value <= 0.05)
    assert 0.02 <= np.mean(rejected) <= 0.085
    x, flags, random = data(0, shift=1.5)
    assert hotelling_test(x, flags, np.zeros(len(x), dtype=np.int64), 199, random).p_value == 1 / 200
