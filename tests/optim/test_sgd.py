"""The schedule and the update against what is written out by hand; the whole step is tested with the training room."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from cadr.optim import SGD
from cadr.optim.flat_parameters import Flat


def test_learning_rate_ends_at_a_fifth():
    rates = [float(SGD().factor(torch.tensor(k), 100)) for k in (0, 50, 100)]
    assert rates == pytest.approx([1.0, math.cos(7 * math.pi / 32), math.cos(7 * math.pi / 16)])
    flat = float(SGD(cosine=1 / 16).factor(torch.tensor(100), 100))
    assert flat == pytest.approx(math.cos(math.pi / 16))  # CReST's


def test_update_does_not_decay_the_rest():
    flat = Flat(nn.Linear(2, 1))
    weights, zero = torch.ones(flat.size), torch.zeros(flat.size)
    SGD(lr=0.5, sgd_momentum=0.0, weight_decay=0.5).begin(flat, weights, zero, zero.clone())(torch.tensor(1.0))
    kernel, bias = flat.views(weights)
    assert (kernel.tolist(), bias.tolist()) == ([[0.75, 0.75]], [1.0])
