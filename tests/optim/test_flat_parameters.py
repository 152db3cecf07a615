"""Parameters as views into one tensor."""

from __future__ import annotations

import torch

from cadr.optim.flat_parameters import Flat
from tests.training.test_step import network


def test_flat_parameters_keep_shape_memory_order_and_alignment():
    model = network()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    before = [p.detach().clone(memory_format=torch.preserve_format) for p in model.parameters()]
    strides = [p.stride() for p in model.parameters()]
    flat = Flat(model)
    weights, parameters = flat.adopt(model)
    assert [p.stride() for p in model.parameters()] == strides
    assert all(a.equal(b) for a, b in zip(model.parameters(), before, strict=True))
    assert [p.ndim > 1 for p in parameters] == sorted((p.ndim > 1 for p in parameters), reverse=True)
    assert all(p.data_ptr() % 16 == 0 for p in parameters)
    weights.zero_()
    assert all((p == 0).all() for p in model.parameters())
    marks = torch.zeros(flat.size)
    marks[: flat.decayed] = 1
    assert all(bool((view == (view.ndim > 1)).all()) for view in flat.views(marks))
