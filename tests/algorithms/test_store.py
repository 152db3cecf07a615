"""The memory of examples: what was said last is kept, in whatever order a device writes."""

import pytest
import torch

from cadr.algorithms import store


def from_the_end(self, dim, index, values):
    """As a GPU might do it."""
    assert dim == 0
    copy = self.clone()
    for row, value in reversed(list(zip(index.tolist(), values, strict=True))):
        copy[row] = value
    return copy


@pytest.mark.parametrize("backwards", [False, True])
def test_the_later_of_two_values_is_kept(backwards, monkeypatch):
    if backwards:
        monkeypatch.setattr(torch.Tensor, "index_copy", from_the_end)
    before = torch.zeros(5, 2)
    values = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    after = store.remember(before, torch.tensor([3, 0, 3, 4]), values)
    assert after[:, 0].tolist() == [2, 0, 0, 3, 4]
    assert before.abs().max() == 0
