"""Counter-based draws that are not uniform, against SciPy's distributions; each test fixes its key."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from cadr.utils import random_numbers

KEY = random_numbers.key(7, torch.tensor(3), 4)
N = 20_000


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.75, 1.0, 2.5, 30.0])
def test_gamma(shape):
    drawn = random_numbers.log_gamma(KEY, shape, N).double().exp().numpy()
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > 0.01


@pytest.mark.parametrize(("a", "b"), [(0.4, 0.4), (0.5, 0.5), (0.75, 0.75), (1.0, 1.0), (8.0, 8.0), (2.0, 0.5)])
def test_beta(a, b):
    drawn = random_numbers.beta(KEY, a, b, N).double().numpy()
    assert ((drawn >= 0) & (drawn <= 1)).all()
    assert stats.kstest(drawn, stats.beta(a, b).cdf).pvalue > 0.01
    # and neighbours have nothing to do with one another
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 3.5 / np.sqrt(N)


def test_the_test_above_can_fail():
    drawn = random_numbers.beta(KEY, 0.75, 0.75, N).double().numpy()
    assert stats.kstest(drawn, stats.beta(0.65, 0.65).cdf).pvalue < 0.01


def test_another_key_is_another_draw():
    other = random_numbers.key(7, torch.tensor(4), 4)
    assert not random_numbers.beta(KEY, 0.5, 0.5, 20).equal(random_numbers.beta(other, 0.5, 0.5, 20))
    assert random_numbers.beta(KEY, 0.5, 0.5, 20).equal(random_numbers.beta(KEY, 0.5, 0.5, 20))


def test_permutations_are_uniform():
    seen = np.zeros((5, 5))
    for step in range(2000):
        order = random_numbers.permutation(random_numbers.key(1, torch.tensor(step), 0), 5)
        assert sorted(order.tolist()) == [0, 1, 2, 3, 4]
        seen[np.arange(5), order.numpy()] += 1
    assert stats.chisquare(seen.ravel()).statistic < stats.chi2(16).ppf(0.999)  # 16 cells are free


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("n", [1, 300])
def test_compiled_draws_are_the_same(n):
    drawn = torch.compile(lambda key: random_numbers.uniform(key, n), dynamic=False)(KEY.cuda())
    assert drawn.cpu().equal(random_numbers.uniform(KEY, n))
