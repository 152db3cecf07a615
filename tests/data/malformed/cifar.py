"""CIFAR, as it is distributed: batches, archives, and the packed arrays."""

from __future__ import annotations

import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.data.loose import open_data
from tests.data.malformed.case import X, Y, case, several
from tests.data.malformed.hostile import Hostile, HostileEval
from tests.data.writers import (
    binary_batch,
    planes,
    python2_batch,
    write_cifar10_binary,
    write_cifar10_python,
    write_tar,
    write_tar_entries,
)


def cifar(folder: Path, batch: bytes, name: str = "data_batch_2") -> Callable[[], Any]:
    root = write_cifar10_python(folder / "cifar-10-batches-py", X, Y, X, Y)
    (root / name).write_bytes(batch)
    return lambda: open_data("cifar10", root=folder)


GOOD = python2_batch(X, Y)


@several(
    "PickleError",
    {
        "cut short": (GOOD[: len(GOOD) // 2], "not a readable pickle"),
        "that is empty": (b"", "not a readable pickle"),
        "that is noise": (bytes(range(256)) * 4, "data_batch_2"),
        "that is a list": (pickle.dumps([1, 2], protocol=2), "should hold a dictionary, got list"),
        "with an array of objects": (
            pickle.dumps({b"data": np.array([[None]]), b"labels": [0]}, protocol=2),
            "array of type b'O8'|'O8'",
        ),
        "with an array of numbers": (
            pickle.dumps({b"data": np.zeros((1, 3072)), b"labels": [0]}, protocol=2),
            "where only bytes belong",
        ),
        "with a shape that does not fit": (
            GOOD.replace(b"J" + struct.pack("<i", 3072), b"J" + struct.pack("<i", 3073)),
            "does not fit its shape",
        ),
        "that is a memo bomb": (b"\x80\x02}r\xff\xff\xff\x7f.", "more objects than it can hold"),
        "with an extension": (b"\x80\x02\x82\x01.", "operation EXT1"),
        "that makes an instance": (b"(ios\nsystem\n.", "operation INST"),
        "that builds a class": (b"\x80\x02cnumpy\nndarray\n)\x81.", "operation NEWOBJ"),
        "that changes a function": (b"\x80\x02cnumpy\ndtype\n}b.", "changes a function"),
        "that calls a text": (b"\x80\x02U\x01x)R.", "not a readable pickle"),
        "with a persistent object": (b"\x80\x02Pid\n.", "operation PERSID"),
        "in another encoding": (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aU\x04rot1\x86R.", "other than latin1"),
    },
    words=("data_batch_2",),
)
def cifar_batch(folder, content):
    return cifar(folder, content)


@several(
    "PickleError",
    {"the system": (Hostile, "system"), "eval": (HostileEval, "__builtin__.eval|builtins.eval")},
    words=("data_batch_2", "refused", "the official files never do"),
)
def cifar_batch_that_calls(folder, kind):
    return cifar(folder, pickle.dumps({b"data": planes(X), b"labels": kind(folder)}, protocol=2))


@several(
    "CifarError",
    {
        "without data": (pickle.dumps({b"labels": [0]}, protocol=2), "'data' should be rows of 3072 bytes"),
        "without labels": (python2_batch(X, Y, key="names"), "'labels' should be a list"),
        "with fewer labels": (python2_batch(X, Y[:-1]), "50 images but 49 labels"),
        "with a label of 10": (python2_batch(X, Y + 1), "label 10 of image 9", "between 0 and 9"),
        "with a negative label": (python2_batch(X, Y - 1), "label -1 of image 0"),
        "with an endless label": (
            pickle.dumps({b"data": planes(X[:1]), b"labels": [1 << 70]}, protocol=2),
            "far out of range",
        ),
    },
    words=("data_batch_2",),
)
def cifar_contents(folder, content):
    return cifar(folder, content)


@case("DataError", "lacks the file data_batch_4")
def cifar_without_a_batch(folder):
    opener = cifar(folder, GOOD)
    (folder / "cifar-10-batches-py" / "data_batch_4").unlink()
    return opener


@case("ChecksumError", "training images are not those of cifar10", "expected 47af8b")
def cifar_of_other_images(folder):
    return cifar(folder, GOOD)


@several(
    "CifarError",
    {
        "cut short": (binary_batch(X, Y)[:-1], "not a whole number of 3073-byte records"),
        "that is empty": (b"", "0 bytes"),
        "with a label of 200": (binary_batch(X, Y + 191), "between 0 and 9"),
    },
    words=("test_batch.bin",),
)
def cifar_binary(folder, content):
    root = write_cifar10_binary(folder / "cifar-10-batches-bin", X, Y, X, Y)
    (root / "test_batch.bin").write_bytes(content)
    return lambda: open_data("cifar10", root=folder)


def tar(folder: Path, *entries) -> Callable[[], Any]:
    write_tar_entries(folder / "cifar-10-python.tar.gz", entries)
    return lambda: open_data("cifar10", root=folder)


def info(name: str, **fields) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(made, key, value)
    return made


@several(
    "ArchiveError",
    {
        "that climbs out": (info("../../evil"), "'../../evil'", "outside its folder"),
        "at the root": (info("/etc/evil"), "'/etc/evil'", "outside its folder"),
        "that is a symbolic link": (
            info("c/test_batch", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            "link or a device",
        ),
        "that is a hard link": (info("c/test_batch", type=tarfile.LNKTYPE, linkname="/etc/passwd"), "link or a device"),
        "that is a device": (info("c/test_batch", type=tarfile.CHRTYPE), "link or a device"),
        "that is a pipe": (info("c/test_batch", type=tarfile.FIFOTYPE), "link or a device"),
    },
    words=("cifar-10-python.tar.gz",),
)
def archive_with_a_member(folder, member):
    return tar(folder, (member, b""))


@case("ArchiveError", "holds data_batch_1 twice")
def archive_with_a_member_twice(folder):
    return tar(folder, (info("a/data_batch_1"), GOOD), (info("b/data_batch_1"), GOOD))


@case("ArchiveError", "lacks the file data_batch_2")
def archive_that_lacks_a_batch(folder):
    return tar(folder, (info("a/data_batch_1"), GOOD))


@case("ArchiveError", "cifar-10-python.tar.gz", "cannot be read to its end")
def archive_cut_short(folder):
    root = write_cifar10_python(folder / "whole", X, Y, X, Y)
    path = write_tar(folder / "cifar-10-python.tar.gz", root)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return lambda: open_data("cifar10", root=folder)


@several(
    "ArchiveError",
    {"text": (b"hello",), "nothing": (b"",)},
    words=("cifar-10-python.tar.gz cannot be read to its end",),
)
def archive_of(folder, content):
    (folder / "cifar-10-python.tar.gz").write_bytes(content)
    return lambda: open_data("cifar10", root=folder)


@several(
    "CifarError",
    {
        "without labels": ({"x_train": X}, "no array y_train"),
        "of other images": ({"x_train": X[:, :8], "y_train": Y, "x_test": X, "y_test": Y}, "x_train is uint8"),
    },
    words=("cifar10.npz",),
)
def cifar_npz(folder, arrays):
    np.savez(folder / "cifar10.npz", **arrays)
    return lambda: open_data("cifar10", root=folder)
