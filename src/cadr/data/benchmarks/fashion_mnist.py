"""Fashion-MNIST: four idx files, gzipped or not."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from cadr.data.benchmarks.container import ChecksumError
from cadr.data.pool import Pool
from cadr.errors import DataError
from cadr.utils.text import reason

CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
# Of the numbers in the files, whether they are gzipped or not.
SHA256 = {
    "train-images-idx3-ubyte": "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
    "train-labels-idx1-ubyte": "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
    "t10k-images-idx3-ubyte": "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
    "t10k-labels-idx1-ubyte": "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
}
LIMIT = 1 << 28  # bytes that one file may hold; the largest has 47 million


class IdxError(DataError):
    """An idx file is damaged, or of another kind."""


def open_fashion_mnist(path: Path) -> Pool:
    """The pool, verified by its contents."""
    arrays = read_fashion_mnist(path)
    for name, array in arrays.items():
        got = hashlib.sha256(array.data).hexdigest()
        if got != SHA256[name]:
            raise ChecksumError(
                f"{path}: {name} does not hold what was published (sha256 {got}, expected {SHA256[name]}); get it again"
            )
    return to_pool(arrays)


def read_fashion_mnist(path: Path) -> dict[str, NDArray[np.uint8]]:
    arrays = {}
    for name in SHA256:
        choices = [path / name, path / f"{name}.gz"]
        file = next((f for f in choices if f.is_file()), None)
        if file is None:
            raise IdxError(f"{path} lacks the file {name} (or {name}.gz)")
        arrays[name] = read_idx(file, dimensions=3 if "idx3" in name else 1)
    return arrays


def to_pool(arrays: dict[str, NDArray[np.uint8]]) -> Pool:
    images, labels, test_images, test_labels = (arrays[name] for name in SHA256)
    for x, y in ((images, labels), (test_images, test_labels)):
        if len(x) != len(y):
            raise IdxError(f"fashion_mnist: {len(x)} images but {len(y)} labels")
    return Pool(
        examples=_rgb(images),
        labels=labels.astype(np.int64),
        class_names=CLASS_NAMES,
        name="fashion_mnist",
        test_examples=_rgb(test_images),
        test_labels=test_labels.astype(np.int64),
    )


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """An idx file of bytes with so many dimensions; never more is unpacked than its header announces."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as opened:
            file = cast(IO[bytes], opened)
            magic = file.read(4)
            if magic != bytes([0, 0, 8, dimensions]):
                raise IdxError(f"{path} starts with {magic.hex() or 'nothing'}, expected 000008{dimensions:02x}")
            header = file.read(4 * dimensions)
            if len(header) != 4 * dimensions:
                raise IdxError(f"{path} ends within its header")
            shape = tuple(int(d) for d in np.frombuffer(header, dtype=">u4"))
            size = int(np.prod(shape, dtype=object))
            if not 0 < size <= LIMIT:
                raise IdxError(f"{path} announces an array of shape {shape}; expected between 1 and {LIMIT} bytes")
            data = file.read(size)
            if len(data) != size or file.read(1):
                more = "more" if len(data) == size else f"{len(data)}"
                raise IdxError(f"{path} announces {size} bytes for shape {shape} and holds {more}")
    except (OSError, EOFError, zlib.error) as error:
        raise IdxError(f"{path} cannot be read to its end: {reason(error)}") from error
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _rgb(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.repeat(images[..., None], 3, axis=-1)
