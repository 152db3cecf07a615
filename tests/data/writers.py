"""Files in the official formats of the benchmarks, written from arrays, byte for byte as their authors would."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def planes(images):
    """NHWC images as CIFAR stores them: rows of red, green and blue planes."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


def python2_batch(images, labels, key="labels"):
    """A pickle as Python 2 wrote it (protocol 2, byte strings, numpy.core): what the official files look like."""
    rows = planes(images)

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def whole(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    reconstruct = b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85" + text(b"b") + b"\x87R"
    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xff"
    dtype += b"J\xff\xff\xff\xffK\x00tb"
    raw = rows.tobytes()
    state = b"(K\x01" + whole(rows.shape[0]) + whole(rows.shape[1]) + b"\x86" + dtype
    state += b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"
    listed = b"](" + b"".join(whole(int(label)) for label in labels) + b"e"
    entries = text(b"batch_label") + text(b"a batch") + text(b"data") + reconstruct + state
    entries += text(key.encode()) + listed
    return b"\x80\x02}q\x00(" + entries + b"u."


def python3_batch(images, labels, key=b"labels", protocol=2) -> bytes:
    """The same dictionary as Python 3 and today's NumPy write it."""
    return pickle.dumps({b"data": planes(images), key: [int(label) for label in labels]}, protocol=protocol)


def binary_batch(images, *labels) -> bytes:
    """Records of label bytes (coarse and fine on CIFAR-100) and pixels."""
    columns = [np.asarray(column, dtype=np.uint8)[:, None] for column in labels]
    return np.concatenate([*columns, planes(images)], axis=1).tobytes()


def write_cifar10_python(folder: Path, x, y, x_test, y_test, batch=python2_batch) -> Path:
    folder.mkdir(parents=True)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 5), start=1):
        (folder / f"data_batch_{i}").write_bytes(batch(x[rows], y[rows]))
    (folder / "test_batch").write_bytes(batch(x_test, y_test))
    return folder


def write_cifar10_binary(folder: Path, x, y, x_test, y_test) -> Path:
    folder.mkdir(parents=True)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 5), start=1):
        (folder / f"data_batch_{i}.bin").write_bytes(binary_batch(x[rows], y[rows]))
    (folder / "test_batch.bin").write_bytes(binary_batch(x_test, y_test))
    return folder


def write_tar(path: Path, folder: Path, prefix: str | None = None) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=prefix or folder.name)
    return path


def write_tar_entries(path: Path, entries) -> Path:
    """A tar of (TarInfo, bytes) as they come, however hostile."""
    with tarfile.open(path, "w:gz") as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_fashion_mnist(folder: Path, x, y, x_test, y_test, zipped=True) -> Path:
    folder.mkdir(parents=True)
    for name, array in (
        ("train-images-idx3-ubyte", x),
        ("train-labels-idx1-ubyte", y),
        ("t10k-images-idx3-ubyte", x_test),
        ("t10k-labels-idx1-ubyte", y_test),
    ):
        data = idx(np.asarray(array, dtype=np.uint8))
        (folder / (name + ".gz" if zipped else name)).write_bytes(gzip.compress(data) if zipped else data)
    return folder


def write_stl10(folder: Path, x, y, unlabelled, x_test, y_test) -> Path:
    folder.mkdir(parents=True)
    for name, images in (("train", x), ("unlabeled", unlabelled), ("test", x_test)):
        (folder / f"{name}_X.bin").write_bytes(np.ascontiguousarray(images.transpose(0, 3, 2, 1)).tobytes())
    (folder / "train_y.bin").write_bytes((np.asarray(y) + 1).astype(np.uint8).tobytes())
    (folder / "test_y.bin").write_bytes((np.asarray(y_test) + 1).astype(np.uint8).tobytes())
    return folder


def write_image(path: Path, pixels, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels)).save(path, **options)
    return path


def tiny(n, side=32, classes=10, seed=0):
    """n images of noise, and labels in which every class occurs."""
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (n, side, side, 3), dtype=np.uint8), np.arange(n, dtype=np.int64) % classes
