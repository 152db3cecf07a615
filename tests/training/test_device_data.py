"""Features as the network gets them."""

import numpy as np
import pytest
import torch

from cadr.data.pool import Pool
from cadr.data.sources.columns import RARE
from cadr.training.feed import Inputs

N = 10_000


def inputs(examples, stream=None):
    labels = np.full(N, -1)
    labels[:2] = 0, 1
    pool = Pool(np.asarray(examples, dtype=np.float32), labels, ("x", "y"), stream=stream)
    return Inputs.of(pool, torch.device("cpu"))


def test_features_are_standardised():
    number = np.random.default_rng(0).normal(7, 3, N)
    common = np.arange(N) % 4 == 0
    found = inputs(np.stack([number, common, np.full(N, 5)], axis=1))
    torch.testing.assert_close(found.examples.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.examples.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("other", [1, 0])
def test_a_word_in_one_row_stays_near(other):
    once = np.full(N, 1 - other)
    once[17] = other
    far = inputs(once[:, None]).examples.abs().max()
    assert float(far) == pytest.approx((1 - 1 / N) / RARE, rel=1e-4)


def test_a_rare_number_is_no_word():
    height = np.zeros(N)
    height[17] = 2.0
    assert float(inputs(height[:, None]).examples.max()) == pytest.approx(np.sqrt(N), rel=1e-2)


def test_a_rare_word_that_the_stream_has_not_stays_near():
    once = np.zeros(N)
    once[0] = 1
    assert float(inputs(once[:, None], stream=np.arange(1, N)).examples.max()) == pytest.approx(1 / RARE)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -5.0])
def test_what_never_changed_does_not_count_later(value):
    found = inputs(np.stack([np.arange(N), np.full(N, value)], axis=1))
    assert found.centre is not None
    assert found.scale is not None
    assert found.examples[:, 1].abs().max() == 0
    later = (torch.tensor([3.0, 300.0]) - found.centre) / found.scale
    assert later[0].abs() > 0.1
    assert later[1].abs() < 1e-30
