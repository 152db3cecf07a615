"""Cropping to the middle and scaling back equals Pillow's crop and resize."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from cadr.augment.ctaugment import METHODS, rescale
from tests.augment import samples

SHARES = [0.0, 0.01, 0.078, 0.11, 0.15, 0.2, 0.234, 0.2499]


def by_pillow(image: np.ndarray, share: float, method: str) -> np.ndarray:
    height, width, _ = image.shape
    box = (share * width, share * height, width * (1 - share), height * (1 - share))
    resampling = Image.Resampling[method.upper()]
    return np.asarray(Image.fromarray(image).crop(box).resize((width, height), resampling))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [(8, 8), (32, 32), (20, 33), (84, 84), (96, 64)], ids=str)
def test_rescale_equals_pillow(method, size):
    images = samples.synthetic(*size)
    chosen = np.resize(SHARES, len(images))
    expected = np.stack([by_pillow(image, share, method) for image, share in zip(images, chosen, strict=True)])
    which = torch.full((len(images),), METHODS.index(method))
    got = rescale(torch.from_numpy(images), torch.from_numpy(chosen), which)
    np.testing.assert_array_equal(got.numpy(), expected)
