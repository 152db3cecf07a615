"""Images that are hard on rounding: noise, constants, gradients, few levels, and real ones where they are at hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SIZES = [(8, 8), (32, 32), (20, 33), (84, 84), (96, 64), (3, 5), (1, 1), (96, 96)]
CIFAR = Path(__file__).parents[2] / "data" / "cifar10.npz"


@cache
def synthetic(height: int, width: int) -> np.ndarray:
    """uint8 (n, height, width, 3)."""
    random = np.random.Generator(np.random.PCG64(height * 1000 + width))
    shape = (height, width, 3)
    across = np.broadcast_to(np.linspace(0, 255, width)[None, :, None], shape)
    down = np.broadcast_to(np.linspace(255, 0, height)[:, None, None], shape)
    images = [
        *(random.integers(0, 256, shape) for _ in range(4)),
        *(random.integers(low, high, shape) for low, high in [(0, 2), (254, 256), (100, 103), (30, 200), (17, 90)]),
        *(np.full(shape, level) for level in (0, 1, 127, 255)),
        across,
        down,
        (across + down) / 2,
        np.stack([across[..., 0], down[..., 0], np.full((height, width), 9)], axis=-1),
        np.where(random.random(shape) < 0.02, 255, 0),
        np.clip(random.normal(128, 20, shape), 0, 255),
    ]
    return np.stack([np.asarray(image).astype(np.uint8) for image in images])


@cache
def digits() -> np.ndarray:
    grey = np.round(load_digits().images[:60] * 255 / 16).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=-1)


@cache
def cifar() -> np.ndarray | None:
    if not CIFAR.exists():
        return None
    with np.load(CIFAR) as archive:
        images = [archive[name] for name in archive.files if archive[name].ndim == 4]
    return np.ascontiguousarray(images[-1][:40])
