"""What views do to pictures: filters, tables of grey levels, and where pixels go, all to the bit as Pillow does it.

A table has 256 entries per image and channel. Each function that makes one takes uint8 images (n, h, w, c) and one
float64 amount per image and returns uint8 tables (n, 256, c) or, when the channels share one, (n, 256, 1). All equal
Pillow's `ImageOps` and `ImageEnhance` exactly when computed with separately rounded products and sums; a compiler that
contracts them into one rounding can move `autocontrast`, `brightness` and `contrast` by one grey level.

Rotation, shear and translation: nearest neighbour, 16.16 fixed point, black outside. A transformation is six integers
per image: output pixel (x, y) shows input pixel ((a x + b y + c) >> 16, (d x + e y + f) >> 16), rounded as Pillow does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from cadr.utils import random_numbers


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


def _levels(images: Tensor) -> Tensor:
    return torch.arange(256, device=images.device, dtype=torch.int32)[None, :, None]


def _per_table(amount: Tensor) -> Tensor:
    return amount[:, None, None]


def autocontrast(images: Tensor, amount: Tensor) -> Tensor:
    """Stretch each channel to the full range; `amount` blends from none (0) to all (1)."""
    low = images.amin(dim=(1, 2))[:, None].to(torch.float64)
    high = images.amax(dim=(1, 2))[:, None].to(torch.float64)
    span = (high - low).clamp(min=1.0)
    scale = torch.full_like(span, 255.0) / span  # 255.0 / span would multiply by a rounded reciprocal
    levels = _levels(images)
    stretched = (levels * scale - low * scale).clamp(0, 255).to(torch.int32)
    return blend(levels, torch.where(high > low, stretched, levels), _per_table(amount))


def histogram(images: Tensor) -> Tensor:
    """How often each level occurs: int32 (n, 256, c)."""
    n, _, _, channels = images.shape
    levels = images.reshape(n, -1, channels).to(torch.int64)
    ones = torch.ones((), dtype=torch.int32, device=images.device).expand(levels.shape)
    return torch.zeros(n, 256, channels, dtype=torch.int32, device=images.device).scatter_add_(1, levels, ones)


def equalise(images: Tensor, amount: Tensor) -> Tensor:
    """Flatten each channel's histogram; `amount` blends from none to all.

    Pillow leaves a channel alone when fewer than 255 of its pixels lie below its brightest level, which every image of
    fewer than 256 pixels fulfils.
    """
    _, height, width, _ = images.shape
    count = histogram(images)
    brightest = images.amax(dim=(1, 2))[:, None].to(torch.int64)
    step = (height * width - count.gather(1, brightest)) // 255
    below = count.cumsum(1, dtype=torch.int32) - count
    levels = _levels(images)
    flattened = ((step // 2 + below) // step.clamp(min=1)).clamp(max=255)
    return blend(levels, torch.where(step > 0, flattened, levels), _per_table(amount))


def invert(images: Tensor, amount: Tensor) -> Tensor:
    """The negative; `amount` blends from none to all."""
    levels = _levels(images)
    return blend(levels, 255 - levels, _per_table(amount))


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    return blend(torch.zeros_like(_levels(images)), _levels(images), _per_table(factor))


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (or towards) the image's mean grey level, which is rounded half up."""
    _, height, width, _ = images.shape
    pixels = height * width
    total = grey(images).sum(dim=(1, 2), dtype=torch.int32)
    mean = (2 * total + pixels) // (2 * pixels)
    return blend(mean[:, None, None], _levels(images), _per_table(factor))


def posterise(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the `bits` highest bits."""
    dropped = _per_table(8 - bits.to(torch.int32))
    return ((_levels(images) >> dropped) << dropped).to(torch.uint8)


def solarise(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the levels at or above the threshold."""
    levels = _levels(images)
    return torch.where(levels < _per_table(threshold), levels, 255 - levels).to(torch.uint8)


TABLES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "autocontrast": autocontrast,
    "equalise": equalise,
    "invert": invert,
    "brightness": brightness,
    "contrast": contrast,
    "posterise": posterise,
    "solarise": solarise,
}


def look_up(images: Tensor, tables: Tensor) -> Tensor:
    """Send every pixel through its image's table (n, 256, c)."""
    n, height, width, channels = images.shape
    channel = torch.arange(height * width * channels, device=images.device, dtype=torch.int32) % channels
    first = torch.arange(0, n * 256 * channels, 256 * channels, device=images.device, dtype=torch.int32)[:, None]
    position = images.reshape(n, -1).to(torch.int32) * channels + (first + channel)
    return tables.reshape(-1).index_select(0, position.reshape(-1)).reshape(images.shape)


class Moves(NamedTuple):
    """What happens to each image of a batch, all (n,)."""

    down: Tensor  # int64: output row y shows input row y + down, mirrored at the edges
    right: Tensor  # int64, likewise
    mirrored: Tensor  # bool: left and right exchanged, after the shift


def draw_moves(key: Tensor, n: int, height: int, width: int, *, flip: bool, shift: int) -> Moves:
    """Uniform shifts of up to `shift` pixels either way, and a flip with probability one half."""
    vertical, horizontal, side = random_numbers.uniform(key, 3, n)
    reach_y, reach_x = min(shift, height - 1), min(shift, width - 1)
    down = (vertical * (2 * reach_y + 1)).to(torch.int64) - reach_y
    right = (horizontal * (2 * reach_x + 1)).to(torch.int64) - reach_x
    return Moves(down, right, (side < 0.5) if flip else torch.zeros_like(side, dtype=torch.bool))


def _reflect(position: Tensor, size: int) -> Tensor:
    """Mirror positions outside 0 … size − 1 at the edge pixels, without repeating them."""
    return (size - 1) - ((size - 1) - position.abs()).abs()


def move(images: Tensor, moves: Moves) -> Tensor:
    """Each image (n, h, w, c) under its own move."""
    n, height, width, channels = images.shape
    row = _reflect(torch.arange(height, device=images.device) + moves.down[:, None], height)
    column = _reflect(torch.arange(width, device=images.device) + moves.right[:, None], width)
    column = torch.where(moves.mirrored[:, None], column.flip(1), column)
    first = torch.arange(0, n * height, height, device=images.device)[:, None]
    position = ((first + row) * width)[:, :, None] + column[:, None, :]
    return images.reshape(-1, channels).index_select(0, position.reshape(-1)).reshape(images.shape)


GREY = 127


def draw_centres(key: Tensor, n: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The row and column of each square's centre, uniform over the pixels: int64 (n,) each."""
    vertical, horizontal = random_numbers.uniform(key, 2, n)
    return (vertical * height).to(torch.int64), (horizontal * width).to(torch.int64)


def _covered(length: int, centre: Tensor, size: Tensor | int, each: int, device: torch.device) -> Tensor:
    """255 where a position lies in the square and 0 elsewhere, `each` entries a position: uint8 (n, length · each)."""
    position = torch.arange(length * each, device=device) // each
    start = centre - size // 2
    inside = (position >= start[:, None]) & (position < (start + size)[:, None])
    return inside.to(torch.uint8) * 255


def cutout(images: Tensor, row: Tensor, column: Tensor, size: Tensor | int) -> Tensor:
    """Hide a square of `size` pixels about (row, column) in each uint8 image (n, h, w, c), as far as it is inside.

    Of a square of even size the centre is the pixel right of and below its middle.
    """
    n, height, width, channels = images.shape
    rows = _covered(height, row, size, 1, images.device)
    columns = _covered(width, column, size, channels, images.device)
    hidden = rows[:, :, None] & columns[:, None, :]
    flat = images.reshape(n, height, width * channels)
    return (flat ^ ((flat ^ GREY) & hidden)).reshape(images.shape)  # `where` on bytes is many times slower on a CPU


_ONE = 1 << 16

Coefficients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _fixed(value: Tensor) -> Tensor:
    return torch.floor(value * _ONE + 0.5).to(torch.int32)


# Half a pixel is part of every offset: it moves from pixel corners, where Pillow's matrices count, to pixel centres.


def rotate(degrees: Tensor, height: int, width: int) -> Coefficients:
    """Counter-clockwise about the centre, as `Image.rotate`."""
    angle = degrees * (math.pi / 180)
    cos, sin = torch.cos(angle), torch.sin(angle)
    x, y = width / 2, height / 2
    right = x - (cos * x - sin * y) + cos * 0.5 - sin * 0.5
    down = y - (sin * x + cos * y) + sin * 0.5 + cos * 0.5
    fixed_cos, fixed_sin = _fixed(cos), _fixed(sin)
    return fixed_cos, _fixed(-sin), _fixed(right), fixed_sin, fixed_cos, _fixed(down)


def shear_x(shear: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(shear)
    return one, _fixed(shear), _fixed(0.5 + shear * 0.5), zero, one, half


def shear_y(shear: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(shear)
    return one, zero, half, _fixed(shear), one, _fixed(shear * 0.5 + 0.5)


def translate_x(pixels: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(pixels)
    return one, zero, _fixed(pixels + 0.5), zero, one, half


def translate_y(pixels: Tensor, height: int, width: int) -> Coefficients:
    one, zero, half = _constants(pixels)
    return one, zero, half, zero, one, _fixed(pixels + 0.5)


def _constants(like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    one = torch.full_like(like, _ONE, dtype=torch.int32)
    return one, torch.zeros_like(one), one >> 1


AFFINE: dict[str, Callable[[Tensor, int, int], Coefficients]] = {
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
}


def transform(images: Tensor, coefficients: Coefficients) -> Tensor:
    """Each uint8 image (n, h, w, c) under its own transformation."""
    n, height, width, channels = images.shape
    a, b, c, d, e, f = (value[:, None, None] for value in coefficients)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)[:, None]
    column, row = (a * x + (b * y + c)) >> 16, (d * x + (e * y + f)) >> 16
    near_row, near_column = row.clamp(0, height - 1), column.clamp(0, width - 1)
    inside = ((near_row ^ row) | (near_column ^ column)) == 0
    # Position 0 is a black pixel put before all others: what lies outside needs no second pass over the result.
    pixels = torch.cat([images.new_zeros(1, channels), images.reshape(-1, channels)])
    first = torch.arange(1, n * height * width + 1, height * width, device=images.device, dtype=torch.int32)
    position = (first[:, None, None] + (near_row * width + near_column)) * inside
    return pixels.index_select(0, position.reshape(-1)).reshape(images.shape)
