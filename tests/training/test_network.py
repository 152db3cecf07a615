"""How many examples are evaluated at once: what a GPU likes, or what the caches of the cores hold."""

import pytest
import torch

from cadr.training.network import at_once

IMAGE = 32 * 32 * 3


@pytest.mark.parametrize(
    ("device", "threads", "numbers", "examples"),
    [
        ("cuda", 1, IMAGE, 2048),
        ("cpu", 1, IMAGE, 85),
        ("cpu", 2, IMAGE, 170),
        ("cpu", 64, IMAGE, 2048),  # no more than on a GPU
        ("cpu", 1, 64, 4096),
        ("cpu", 1, 10**9, 16),
    ],
)
def test_at_once(device, threads, numbers, examples, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert at_once(numbers, torch.device(device)) == examples
