"""CIFAR-10 and CIFAR-100: the official python batches and the binary version, from a folder or the `.tar.gz`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.benchmarks.container import ArchivedFile, ChecksumError, members
from cadr.data.benchmarks.registry import Place
from cadr.data.benchmarks.unpickle import unpickle
from cadr.data.pool import Pool
from cadr.data.sources.npz import read_npz
from cadr.errors import DataError

CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_FINE_LABELS = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm"""
CIFAR100_NAMES = tuple(_FINE_LABELS.split())


PIXELS = 3 * 32 * 32
LIMIT = 1 << 28  # bytes of one file; the largest official one has 155 million

Part = tuple[NDArray[np.uint8], NDArray[np.int64]]


class CifarError(DataError):
    """A CIFAR file is not in the official format."""


@dataclass(frozen=True)
class Cifar:
    """What differs between the two sets."""

    name: str
    class_names: tuple[str, ...]
    key: str  # of the labels in a python batch
    label_bytes: int  # before the pixels of a binary record; the last of them is the label
    train: tuple[str, ...]  # files of the python version; the binary version adds .bin
    test: tuple[str, ...]
    sha256: dict[str, str]  # of the pixels and labels in official order: the same in every format
    any_order: tuple[str, str] | None = None  # of training and test images with their labels, however they are ordered


CIFAR10 = Cifar(
    name="cifar10",
    class_names=CIFAR10_NAMES,
    key="labels",
    label_bytes=1,
    train=tuple(f"data_batch_{i}" for i in range(1, 6)),
    test=("test_batch",),
    sha256={
        "training images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "training labels": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "test images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "test labels": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
)
CIFAR100 = Cifar(
    name="cifar100",
    class_names=CIFAR100_NAMES,
    key="fine_labels",
    label_bytes=2,
    train=("train",),
    test=("test",),
    sha256={},
    any_order=(
        "fad61349b6d9e3bed94becec487801a58051edde135c4573825e07777a0f76ec",
        "5e3a6f2efee610990eeb9849cbd3fb7f72cc7bd1e254d81be752ae97667e2145",
    ),
)


def open_cifar(cifar: Cifar, place: Place) -> Pool:
    """The pool, verified: by its contents where their hash is known, else by the checksums of the files."""
    parts = read_cifar(cifar, place.path, {} if cifar.sha256 else place.md5)
    if place.form.by_contents and cifar.any_order is not None:
        for part, what, expected in zip(parts, ("training", "test"), cifar.any_order, strict=True):
            if (got := any_order_sha256(*part)) != expected:
                raise _not_that(cifar, place.path, f"{what} images and labels", got, expected)
    pool = to_pool(cifar, *parts)
    verify_contents(cifar, pool, place.path)
    return pool


def any_order_sha256(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> str:
    """A hash of images with their labels that does not depend on their order: a repacked set may be shuffled."""
    rows = (hashlib.sha256(image.tobytes() + b"%d" % label) for image, label in zip(images, labels, strict=True))
    return hashlib.sha256(b"".join(sorted(row.digest() for row in rows))).hexdigest()


def read_cifar(cifar: Cifar, path: Path, md5: dict[str, str] | None = None) -> tuple[Part, Part]:
    """Training and test part of whatever is at `path`: an `.npz`, or a folder or archive of either version."""
    if path.suffix == ".npz":
        return _npz(cifar, path)
    binary = "bin" in path.name
    suffix, read = (".bin", _binary) if binary else ("", _python)
    wanted = [name + suffix for name in (*cifar.train, *cifar.test)]
    parts: dict[str, Part] = {}
    for name, member in members(path, wanted):
        parts[name] = read(cifar, member)
        member.verify((md5 or {}).get(name))
    return _joined(parts, cifar.train, suffix), _joined(parts, cifar.test, suffix)


def to_pool(cifar: Cifar, train: Part, test: Part) -> Pool:
    return Pool(
        examples=train[0],
        labels=train[1],
        class_names=cifar.class_names,
        name=cifar.name,
        test_examples=test[0],
        test_labels=test[1],
    )


def verify_contents(cifar: Cifar, pool: Pool, path: Path) -> None:
    for (what, expected), array in zip(
        cifar.sha256.items(), (pool.examples, pool.labels, pool.test_examples, pool.test_labels), strict=False
    ):
        assert array is not None
        got = hashlib.sha256(np.ascontiguousarray(array, dtype=np.uint8).data).hexdigest()
        if got != expected:
            raise _not_that(cifar, path, what, got, expected)


def _not_that(cifar: Cifar, path: Path, what: str, got: str, expected: str) -> ChecksumError:
    return ChecksumError(
        f"{path}: the {what} are not those of {cifar.name} (sha256 {got}, expected {expected}); get them again"
    )


def _npz(cifar: Cifar, path: Path) -> tuple[Part, Part]:
    arrays = read_npz(path)
    for name in ("x_train", "y_train", "x_test", "y_test"):
        if name not in arrays:
            raise CifarError(f"{path}: there is no array {name}")
        kind, shape = (np.uint8, (32, 32, 3)) if name[0] == "x" else (np.int64, ())
        if arrays[name].dtype != kind or arrays[name].ndim == 0 or arrays[name].shape[1:] != shape:
            raise CifarError(f"{path}: {name} is {arrays[name].dtype} of shape {arrays[name].shape}")
    for part in ("train", "test"):
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if len(images) != len(labels):
            raise CifarError(f"{path}: {len(images)} images but {len(labels)} labels in the {part} part")
        _labels(cifar, str(path), labels)
    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])


def _python(cifar: Cifar, member: ArchivedFile) -> Part:
    batch = unpickle(member.where, member.read(LIMIT))
    pixels, labels = batch.get("data"), batch.get(cifar.key)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != PIXELS:
        raise CifarError(f"{member.where}: 'data' should be rows of {PIXELS} bytes")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise CifarError(f"{member.where}: {cifar.key!r} should be a list of whole numbers")
    if len(labels) != len(pixels):
        raise CifarError(f"{member.where}: {len(pixels)} images but {len(labels)} labels")
    return _images(pixels), _labels(cifar, member.where, labels)


def _binary(cifar: Cifar, member: ArchivedFile) -> Part:
    record = cifar.label_bytes + PIXELS
    data = np.frombuffer(member.read(LIMIT), dtype=np.uint8)
    if len(data) == 0 or len(data) % record:
        raise CifarError(f"{member.where}: {len(data)} bytes are not a whole number of {record}-byte records")
    rows = data.reshape(-1, record)
    return _images(rows[:, cifar.label_bytes :]), _labels(cifar, member.where, rows[:, cifar.label_bytes - 1])


def _images(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _labels(cifar: Cifar, where: str, labels: Any) -> NDArray[np.int64]:
    try:
        array = np.asarray(labels, dtype=np.int64)
    except OverflowError:
        raise CifarError(f"{where}: a label is far out of range") from None
    bad = np.flatnonzero((array < 0) | (array >= len(cifar.class_names)))
    if len(bad):
        raise CifarError(
            f"{where}: label {array[bad[0]]} of image {bad[0]} is not between 0 and {len(cifar.class_names) - 1}"
        )
    return array


def _joined(parts: dict[str, Part], names: tuple[str, ...], suffix: str) -> Part:
    chosen = [parts[name + suffix] for name in names]
    return np.concatenate([x for x, _ in chosen]), np.concatenate([y for _, y in chosen])
