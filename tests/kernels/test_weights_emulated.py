"""The kernel that lays out weights, played on a CPU, against the tensor code that defines it."""

from typing import Any

import pytest
import torch
from torch import nn

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet import weights
from cadr.models.networks import channels_last
from tests import emulated
from tests.kernels.laid_out import lay_out

pytestmark = pytest.mark.skipif(emulated.COMPILER is None, reason="needs g++")


def test_the_kernel_lays_out_weights_as_the_tensor_code_does(tmp_path, monkeypatch):
    torch.manual_seed(0)
    played = emulated.Emulated(tmp_path, weights._SOURCES, ["lay_out"], threads=32)
    sizes = [(3, 16, 3), (16, 24, 3), (7, 5, 3), (6, 5, 1)]  # the first has fewer inputs than our kernels read
    layers: list[Any] = [channels_last(nn.Conv2d(i, o, k, padding=k // 2, bias=False)) for i, o, k in sizes]
    monkeypatch.setattr(weights, "_BLOCKS", 3)
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "kernel", played.kernel)
        by_kernel = weights.prepare(layers[:2], layers[2:])
    monkeypatch.setattr(weights, "lay_out", lay_out)
    by_tensor_code = weights.prepare(layers[:2], layers[2:])
    for layer in layers:
        assert torch.equal(by_kernel[layer].ahead, by_tensor_code[layer].ahead)
        assert torch.equal(by_kernel[layer].back, by_tensor_code[layer].back)
