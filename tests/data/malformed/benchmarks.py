"""Fashion-MNIST, STL-10 and mini-ImageNet, as they are distributed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.data.loose import open_data
from tests.data.malformed.case import PIXELS, X, Y, case, several
from tests.data.writers import (
    idx,
    tiny,
    write_fashion_mnist,
    write_image,
    write_stl10,
)


def fashion(folder: Path, name: str, content: bytes | None) -> Callable[[], Any]:
    grey = X[:, :28, :28, 0]
    root = write_fashion_mnist(folder / "fashion_mnist", grey, Y, grey, Y, zipped=name.endswith(".gz"))
    if content is None:
        (root / name).unlink()
    else:
        (root / name).write_bytes(content)
    return lambda: open_data("fashion_mnist", root=folder)


IMAGES = "train-images-idx3-ubyte"
GOOD_IDX = idx(X[:, :28, :28, 0].copy())


@several(
    "IdxError",
    {
        "missing": ((IMAGES, None), "lacks the file", "or train-images-idx3-ubyte.gz"),
        "with another magic number": (
            (IMAGES, b"\x00\x00\x0d" + GOOD_IDX[3:]),
            "starts with 00000d03",
            "expected 00000803",
        ),
        "of labels instead of images": ((IMAGES, idx(Y.astype(np.uint8))), "starts with 00000801"),
        "that is empty": ((IMAGES, b""), "starts with nothing"),
        "that ends in its header": ((IMAGES, GOOD_IDX[:9]), "ends within its header"),
        "cut short": ((IMAGES, GOOD_IDX[:-5]), "announces 39200 bytes", "holds 39195"),
        "with more than announced": ((IMAGES, GOOD_IDX + b"!"), "announces 39200 bytes", "holds more"),
        "that announces terabytes": ((IMAGES, bytes([0, 0, 8, 3]) + b"\xff" * 12), "announces an array of shape"),
        "whose gzip is cut": ((IMAGES + ".gz", gzip.compress(GOOD_IDX)[:-100]), "cannot be read to its end"),
        "whose gzip is none": ((IMAGES + ".gz", GOOD_IDX), "cannot be read to its end", "gzip"),
    },
    words=("train-images-idx3-ubyte",),
)
def idx_file(folder, arguments):
    return fashion(folder, *arguments)


@several(
    "ChecksumError",
    {"another label": (("train-labels-idx1-ubyte", idx(np.roll(Y, 1).astype(np.uint8))), "train-images-idx3-ubyte")},
    words=("does not hold what was published",),
)
def fashion_with(folder, arguments):
    return fashion(folder, *arguments)


def stl(folder: Path, name: str, content: bytes) -> Callable[[], Any]:
    x, y = tiny(10, side=96)
    root = write_stl10(folder / "somewhere", x, y, x, x, y)
    (root / name).write_bytes(content)

    from cadr.data.benchmarks.stl10 import open_stl10

    return lambda: open_stl10(root)


@several(
    "Stl10Error",
    {
        "images cut short": (("unlabeled_X.bin", bytes(27_647)), "unlabeled_X.bin", "27648-byte images"),
        "images missing": (("test_X.bin", b""), "test_X.bin", "0 bytes"),
        "label of 0": (("train_y.bin", bytes(10)), "train_y.bin", "label 0 of image 0", "between 1 and 10"),
        "label of 11": (("test_y.bin", bytes([11] * 10)), "test_y.bin", "label 11"),
        "labels too few": (("train_y.bin", bytes([1] * 9)), "10 images but 9 labels in the train part"),
    },
)
def stl10(folder, arguments):
    return stl(folder, *arguments)


@case("DataError", "train_y.bin", "more than such a file has")
def stl10_labels_without_end(folder):
    return stl(folder, "train_y.bin", bytes(2_000_000))


def mini(folder: Path, **csvs: str) -> Callable[[], Any]:
    root = folder / "mini_imagenet"
    for label in "ab":
        for i in range(6):
            write_image(root / label / f"{label}{i}.png", PIXELS)
    for name, text in csvs.items():
        (root / f"{name}.csv").write_text("filename,label\n" + text)
    return lambda: open_data("mini_imagenet", root=folder)


@several(
    "MiniImagenetError",
    {
        "without lists": ({}, "lacks train.csv or test.csv"),
        "with a missing image": ({"train": "a9.png,a\n", "test": "b0.png,b\n"}, "train.csv, line 2", "a9.png"),
        "with a path": ({"train": "../a0.png,a\n", "test": "b0.png,b\n"}, "line 2", "'../a0.png' is not a plain name"),
        "with an image twice": ({"train": "a0.png,a\na0.png,a\n", "test": "b0.png,b\n"}, "'a0.png' is listed twice"),
        "with classes half shared": ({"train": "a0.png,a\nb0.png,b\n", "test": "b1.png,b\n"}, "share some classes"),
        "with too few images": ({"train": "a0.png,a\n", "test": "b0.png,b\n"}, "class 'a' has 1 images"),
    },
    words=("mini_imagenet",),
)
def mini_imagenet(folder, csvs):
    return mini(folder, **csvs)


def packed(folder: Path, name: str, **changed: Any) -> Callable[[], Any]:
    """An .npz of empty arrays of the right kind, but for what is changed; None leaves an array out."""
    side = {"cifar100": 32, "mini_imagenet": 84}[name]
    arrays: dict[str, Any] = {f"x_{part}": np.zeros((0, side, side, 3), np.uint8) for part in ("train", "test")}
    arrays |= {f"y_{part}": np.zeros(0, np.int64) for part in ("train", "test")}
    np.savez(folder / f"{name}.npz", **{k: v for k, v in (arrays | changed).items() if v is not None})
    return lambda: open_data(name, root=folder)


@several(
    "MiniImagenetError",
    {
        "without test images": ({"x_test": None}, "there is no array x_test"),
        "of another side": ({"x_train": np.zeros((1, 80, 80, 3), np.uint8)}, "expected uint8 of (50000, 84, 84, 3)"),
        "of few images": ({}, "x_train is uint8 of shape (0, 84, 84, 3)"),
    },
    words=("mini_imagenet.npz",),
)
def mini_imagenet_packed(folder, changed):
    return packed(folder, "mini_imagenet", **changed)


@several(
    "CifarError",
    {
        "without test labels": ({"y_test": None}, "there is no array y_test"),
        "with too few labels": (
            {"x_test": np.zeros((2, 32, 32, 3), np.uint8)},
            "2 images but 0 labels in the test part",
        ),
        "with a label too many": (
            {"x_test": np.zeros((1, 32, 32, 3), np.uint8), "y_test": np.array([100])},
            "label 100 of image 0 is not between 0 and 99",
        ),
    },
    words=("cifar100.npz",),
)
def cifar100_packed(folder, changed):
    return packed(folder, "cifar100", **changed)
