"""Pixel arithmetic shared by the operations: grey levels, blending, smoothing, all as Pillow rounds them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def grey(images: Tensor) -> Tensor:
    """ITU-R 601-2 luma in 16 bits of fixed point, rounded: int32 (n, h, w)."""
    red, green, blue = images.to(torch.int32).unbind(-1)
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16


def blend(start: Tensor, end: Tensor, factor: Tensor) -> Tensor:
    """start + factor (end − start), in float32 and truncated, as `Image.blend`; beyond [0, 1] it extrapolates.

    Exact where product and sum are rounded separately; a compiler that contracts them can move it by one grey level.
    """
    origin = start.to(torch.float32)
    return (origin + factor.to(torch.float32) * (end - start)).clamp(0, 255).to(torch.uint8)


def _filtered(images: Tensor, reach: int, kernel: Callable[[Tensor], Tensor]) -> Tensor:
    """The kernel's result inside, the image itself on the border of `reach` pixels, where Pillow does not filter."""
    if min(images.shape[1:3]) <= 2 * reach:
        return images
    filtered = images.clone()
    filtered[:, reach:-reach, reach:-reach] = kernel(images.to(torch.int32)).to(torch.uint8)
    return filtered


def smooth(images: Tensor) -> Tensor:
    """`ImageFilter.SMOOTH`: 3×3, the centre five times as heavy, rounded half up."""

    def kernel(x: Tensor) -> Tensor:
        rows = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
        box = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
        return (2 * (box + 4 * x[:, 1:-1, 1:-1]) + 13) // 26

    return _filtered(images, 1, kernel)


def blur(images: Tensor) -> Tensor:
    """`ImageFilter.BLUR`: the mean of the 16 pixels on the rim of a 5×5 square, rounded half up."""

    def kernel(x: Tensor) -> Tensor:
        rows = x[:, :-4] + x[:, 1:-3] + x[:, 2:-2] + x[:, 3:-1] + x[:, 4:]
        whole = rows[:, :, :-4] + rows[:, :, 1:-3] + rows[:, :, 2:-2] + rows[:, :, 3:-1] + rows[:, :, 4:]
        rows = x[:, 1:-3] + x[:, 2:-2] + x[:, 3:-1]
        core = rows[:, :, 1:-3] + rows[:, :, 2:-2] + rows[:, :, 3:-1]
        return (whole - core + 8) >> 4

    return _filtered(images, 2, kernel)


def _per_image(amount: Tensor) -> Tensor:
    return amount[:, None, None, None]


def colour(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (or towards) each pixel's own grey level."""
    return blend(grey(images)[..., None], images.to(torch.int32), _per_image(factor))


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (or towards) the smoothed image."""
    return blend(smooth(images).to(torch.int32), images.to(torch.int32), _per_image(factor))


def smoothed(images: Tensor, amount: Tensor) -> Tensor:
    return blend(images.to(torch.int32), smooth(images).to(torch.int32), _per_image(amount))


def blurred(images: Tensor, amount: Tensor) -> Tensor:
    return blend(images.to(torch.int32), blur(images).to(torch.int32), _per_image(amount))


FILTERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "colour": colour,
    "sharpness": sharpness,
    "smooth": smoothed,
    "blur": blurred,
}
