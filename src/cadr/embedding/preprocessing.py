"""What a picture goes through before a pretrained network: resized, cropped, normalised, as the model's own file says.

`preprocessor_config.json` is what Hugging Face writes beside a model. Pillow and NumPy carry it out, so that no
torchvision is needed. Resizing and cropping are done picture by picture and leave uint8; the arithmetic after that is
the network's first layer, which runs on its device and is exported with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cadr.embedding.items import EmbeddingError
from cadr.utils.text import reason
from cadr.utils.untrusted import parse_json, read_text

FILE = "preprocessor_config.json"
_BICUBIC = int(Image.Resampling.BICUBIC)
_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}
_LARGEST = 4096  # pixels a side
_SQUEEZED_FROM = 384  # ConvNeXt: so large a picture is not cut out of a larger one

Size = tuple[int, int]  # height and width


@dataclass(frozen=True)
class Preprocessing:
    """From a picture of any size to the numbers that a network has been trained on: (scale · x − mean) / std."""

    resize: Size | int  # height and width, or the shortest side of a picture that keeps its shape
    crop: Size  # what is cut out of its middle: the network's own size
    resample: int = _BICUBIC
    scale: float = 1 / 255
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @property
    def detail(self) -> int:
        """The shortest side below which a picture has less to show than the network can see."""
        return max(self.resize) if isinstance(self.resize, tuple) else self.resize

    def fit(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """uint8 (h, w, 3) of any size to uint8 (*crop, 3)."""
        high, wide = picture.shape[:2]
        if isinstance(self.resize, tuple):
            wanted = self.resize
        else:
            short, long = sorted((high, wide))
            other = max(1, int(self.resize * long / short))
            wanted = (self.resize, other) if high <= wide else (other, self.resize)
        if wanted != (high, wide):
            image = Image.fromarray(np.ascontiguousarray(picture))
            picture = np.asarray(image.resize(wanted[::-1], Image.Resampling(self.resample)))
        return _middle(picture, *self.crop)

    @staticmethod
    def read(folder: Path) -> Preprocessing:
        """From the `preprocessor_config.json` in a model's folder."""
        path = folder / FILE
        try:
            config = parse_json(read_text(path))
            if not isinstance(config, dict):
                raise ValueError("expected an object")
            return _understood(path, config)
        except FileNotFoundError:
            raise EmbeddingError(
                f"{folder} holds no {FILE}, which says how pictures are resized and normalised for this model; save it "
                "there, as save_pretrained of the image processor does"
            ) from None
        except EmbeddingError:
            raise
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise EmbeddingError(f"{path} cannot be used: {reason(error)}; save the image processor again") from error


def _understood(path: Path, config: dict[str, Any]) -> Preprocessing:
    strange = [key for key, value in config.items() if key.startswith("do_") and value and key not in _STEPS]
    if strange or not config.get("do_resize", True):
        what = f"the step {strange[0]}" if strange else "pictures of any size"
        raise EmbeddingError(f"{path} asks for {what}, which is not supported; use another model")
    resize, crop = _sizes(path, config)
    sides = (*crop, *(resize if isinstance(resize, tuple) else (resize,)))
    if not all(1 <= side <= _LARGEST for side in sides):
        raise ValueError(f"a side of {max(sides)} pixels")
    normalised = config.get("do_normalize", True)
    mean = _three(config["image_mean"]) if normalised else (0.0, 0.0, 0.0)
    std = _three(config["image_std"]) if normalised else (1.0, 1.0, 1.0)
    if config.get("rescale_offset"):  # EfficientNet: to numbers from −1, before the mean is taken off
        mean = _three(value + 1 for value in mean)
    if config.get("include_top"):  # EfficientNet: divided by std once more
        std = _three(value * value for value in std)
    if not all(map(math.isfinite, mean)) or not all(0 < value < math.inf for value in std):
        raise ValueError(f"a mean of {mean} and a standard deviation of {std}")
    scale = float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 1.0
    resample = int(Image.Resampling(config.get("resample", _BICUBIC)))
    return Preprocessing(resize, crop, resample, scale, mean, std)


def _sizes(path: Path, config: dict[str, Any]) -> tuple[Size | int, Size]:
    """What a picture is resized to, and what is cut out of it."""
    size, cropped = config["size"], config.get("do_center_crop", False)
    if isinstance(size, int):  # as these files were until 2022, when its meaning went with the kind of processor
        kept = "crop_pct" in config or (cropped and "DeiT" not in str(config.get("feature_extractor_type")))
        size = {"shortest_edge": size} if kept else {"height": size, "width": size}
    if "longest_edge" in size:
        raise EmbeddingError(f"{path} keeps pictures in shapes of their own, which is not supported; use another model")
    resize: Size | int = int(size["shortest_edge"]) if "shortest_edge" in size else _square(size)
    if cropped:
        return resize, _square(config["crop_size"])
    if isinstance(resize, tuple):
        return resize, resize
    if "crop_pct" not in config:
        raise EmbeddingError(f"{path} keeps pictures in shapes of their own, which is not supported; use another model")
    square = (resize, resize)
    return (square if resize >= _SQUEEZED_FROM else int(resize / config["crop_pct"])), square


def _square(size: Any) -> Size:
    return (int(size["height"]), int(size["width"])) if isinstance(size, dict) else (int(size), int(size))


def _three(values: Any) -> tuple[float, float, float]:
    red, green, blue = map(float, values)
    return red, green, blue


def _middle(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Black around a picture that is smaller."""
    top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
    if top >= 0 and left >= 0:
        return picture[top : top + height, left : left + width]
    return np.asarray(Image.fromarray(picture).crop((left, top, left + width, top + height)))
