"""The oracle: every operation done by Pillow, one image at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

Affine = Image.Transform.AFFINE

OPERATION: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "rotate": lambda image, degrees: image.rotate(degrees),
    "shear_x": lambda image, shear: image.transform(image.size, Affine, (1, shear, 0, 0, 1, 0)),
    "shear_y": lambda image, shear: image.transform(image.size, Affine, (1, 0, 0, shear, 1, 0)),
    "translate_x": lambda image, pixels: image.transform(image.size, Affine, (1, 0, pixels, 0, 1, 0)),
    "translate_y": lambda image, pixels: image.transform(image.size, Affine, (1, 0, 0, 0, 1, pixels)),
    "autocontrast": lambda image, amount: Image.blend(image, ImageOps.autocontrast(image), amount),
    "equalise": lambda image, amount: Image.blend(image, ImageOps.equalize(image), amount),
    "invert": lambda image, amount: Image.blend(image, ImageOps.invert(image), amount),
    "brightness": lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    "contrast": lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    "colour": lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    "sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
    "posterise": lambda image, bits: ImageOps.posterize(image, int(bits)),
    "solarise": lambda image, threshold: ImageOps.solarize(image, int(threshold)),
    "smooth": lambda image, amount: Image.blend(image, image.filter(ImageFilter.SMOOTH), amount),
    "blur": lambda image, amount: Image.blend(image, image.filter(ImageFilter.BLUR), amount),
    "identity": lambda image, amount: image,
}


def fixmatch_amount(name: str, magnitude: int, sign: int, height: int, width: int) -> float:
    """FixMatch's ranges in plain Python (a magnitude is one to nine tenths of the largest)."""
    if name in ("autocontrast", "equalise", "identity"):
        return 1.0
    if name == "posterise":
        return int(magnitude * 4 / 10) + 4
    if name == "solarise":
        return 256 - int(magnitude * 256 / 10)
    if name == "rotate":
        return sign * int(magnitude * 30 / 10)
    if name in ("shear_x", "shear_y"):
        return sign * (float(magnitude) * 0.3 / 10)
    if name in ("translate_x", "translate_y"):
        return int(sign * (float(magnitude) * 0.3 / 10) * (width if name == "translate_x" else height))
    return float(magnitude) * 0.9 / 10 + 0.05


def apply(name: str, images: np.ndarray, amount: float) -> np.ndarray:
    return np.stack([np.asarray(OPERATION[name](Image.fromarray(image), amount)) for image in images])
