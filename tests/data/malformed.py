"""Malformed inputs: each builds something wrong under a folder and returns what opens it."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tests.data.loose import PROTOCOLS, Pool, Split, apply, make_split, open_data
from tests.data.writers import (
    binary_batch,
    idx,
    planes,
    python2_batch,
    tiny,
    write_cifar10_binary,
    write_cifar10_python,
    write_fashion_mnist,
    write_image,
    write_stl10,
    write_tar,
    write_tar_entries,
)


class Case(NamedTuple):
    build: Callable[[Path], Callable[[], Any]]
    error: str  # the name of the error's class
    words: tuple[str, ...]  # what it must say: what is wrong, and where


CASES: dict[str, Case] = {}

X, Y = tiny(50)
FEATURES = np.arange(20, dtype=np.float32).reshape(10, 2)
LABELS = np.arange(10) % 2
PIXELS = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)


def case(error, *words):
    """Add the function as a case under its own name; it returns what to open, or a function that opens."""

    def add(build):
        def opener(folder):
            made = build(folder)
            return made if callable(made) else lambda: open_data(made)

        CASES[build.__name__.replace("_", " ")] = Case(opener, error, words)
        return build

    return add


def several(error, rows, words=()):
    """Cases that differ in one value only: name -> (value, words)."""

    def add(build):
        for name, (value, *more) in rows.items():
            made = case(error, *words, *more)(lambda folder, value=value: build(folder, value))
            CASES[f"{build.__name__} {name}".replace("_", " ")] = CASES.pop(made.__name__.replace("_", " "))
        return build

    return add


def npz(folder: Path, **arrays) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


# ---- arrays


@several(
    "ArrayError",
    {
        "that is empty": (b"", "not an .npz"),
        "that is text": (b"hello, I am no archive", "not an .npz"),
    },
    words=("data.npz",),
)
def npz_file(folder, content):
    (folder / "data.npz").write_bytes(content)
    return folder / "data.npz"


@case("ArrayError", "data.npz", "not an .npz")
def npz_cut_in_half(folder):
    path = npz(folder, x=FEATURES, y=LABELS)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


@case("ArrayError", "data.npz", "x.npy", "Python objects")
def npz_with_a_hostile_pickle(folder):
    return npz(folder, x=np.array([Hostile(folder)], dtype=object), y=LABELS)


@case("ArrayError", "x.npy", "holds 40 bytes", "expected 80")
def npz_with_an_array_cut_short(folder):
    buffer = io.BytesIO()
    np.save(buffer, FEATURES)
    with zipfile.ZipFile(folder / "data.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue()[:-40])
    return folder / "data.npz"


@case("ArrayError", "x.npy", "not a NumPy array")
def npz_with_a_damaged_header(folder):
    with zipfile.ZipFile(folder / "data.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16)
    return folder / "data.npz"


@case("ArrayError", "readme.txt", "not an array")
def npz_with_a_text_file(folder):
    with zipfile.ZipFile(folder / "data.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    return folder / "data.npz"


@case("ArrayError", "data.npz", "Bad CRC-32")
def npz_with_flipped_bits(folder):
    np.savez_compressed(folder / "data.npz", x=FEATURES, y=LABELS)
    with zipfile.ZipFile(folder / "data.npz") as archive:
        info = archive.getinfo("x.npy")
    data = bytearray((folder / "data.npz").read_bytes())
    directory = data.rindex(b"PK\x01\x02", 0, data.rindex(b"y.npy"))
    at = data.index(struct.pack("<I", info.CRC), directory - 200)
    data[at] ^= 1
    at = data.rindex(struct.pack("<I", info.CRC))
    data[at] ^= 1
    (folder / "data.npz").write_bytes(data)
    return folder / "data.npz"


@several(
    "ArrayError",
    {
        "without labels": ({"x": FEATURES}, "there is no y"),
        "with a strange array": ({"x": FEATURES, "y": LABELS, "weights": LABELS}, "'weights' is none of them"),
        "of three-dimensional features": ({"x": np.zeros((10, 2, 2), np.float32), "y": LABELS}, "(10, 2, 2)"),
        "of images with two channels": ({"x": np.zeros((10, 4, 4, 2), np.uint8), "y": LABELS}, "(10, 4, 4, 2)"),
        "of complex numbers": ({"x": np.zeros((10, 2), complex), "y": LABELS}, "complex128"),
        "with numbers too large": ({"x": np.full((10, 2), 1e300), "y": LABELS}, "1e+300 at row 0", "float32"),
        "with class names that are numbers": ({"x": FEATURES, "y": LABELS, "class_names": [1, 2]}, "list of strings"),
    },
    words=("data",),
)
def npz_arrays(folder, arrays):
    return npz(folder, **arrays)


@several(
    "LabelError",
    {
        "of floating point": ({"x": FEATURES, "y": LABELS * 0.5}, "labels[1] is 0.5", "whole numbers"),
        "without end": ({"x": FEATURES, "y": np.where(LABELS, np.inf, 0.0)}, "labels[1] is inf"),
        "in a matrix": ({"x": FEATURES, "y": FEATURES.astype(int)}, "(10, 2)"),
        "unknown to class_names": (
            {"x": FEATURES, "y": np.array(["a", "b"] * 5), "class_names": ["a", "c"]},
            "'b' is not among the class names 'a', 'c'",
        ),
        "partly text": (
            {"x": FEATURES, "y": LABELS, "x_test": FEATURES, "y_test": LABELS.astype(str)},
            "both be whole numbers or both strings",
        ),
        "that count from 1": ({"x": FEATURES, "y": LABELS + 1}, "no label is 0", "from 0 without gaps"),
        "that skip a number": ({"x": FEATURES, "y": LABELS * 2}, "no label is 1, though one is 2", "class_names"),
        "in the millions": ({"x": FEATURES, "y": LABELS * 10_000_000}, "10000000", "million classes"),
    },
    words=("data",),
)
def npz_labels(folder, arrays):
    return npz(folder, **arrays)


@several(
    "DataError",
    {
        "with a label below −1": (
            {"y": np.where(LABELS, 0, -2), "class_names": ["a", "b"]},
            "labels[0] is -2",
            "0 to 1 or −1",
        ),
        "with a label above the names": ({"y": LABELS * 2, "class_names": ["a", "b"]}, "labels[1] is 2", "0 to 1"),
        "with more labels than rows": ({"y": np.arange(12) % 2}, "labels must be 10 int64"),
        "with NaN": ({"x": np.where(FEATURES == 7, np.nan, FEATURES.astype(float))}, "examples[3, 1] is nan"),
        "with infinity": ({"x": np.where(FEATURES == 4, -np.inf, FEATURES.astype(float))}, "examples[2, 0] is -inf"),
        "without rows": ({"x": FEATURES[:0], "y": LABELS[:0], "class_names": ["a", "b"]}, "no examples"),
        "of one class": ({"y": LABELS * 0}, "at least two classes"),
        "without a single label": ({"y": LABELS * 0 - 1}, "at least two classes", "none"),
        "with a class named twice": ({"class_names": ["a", "a"]}, "'a' is named twice"),
        "with another kind of test part": ({"x_test": FEATURES[:, :1], "y_test": LABELS}, "test examples", "(10, 1)"),
        "with unlabelled tests": ({"x_test": FEATURES, "y_test": LABELS - 1}, "test_labels[0] is -1"),
        "with test labels alone": ({"y_test": LABELS}, "test_labels must be 0"),
        "with test examples alone": ({"x_test": FEATURES}, "both test_examples and test_labels"),
    },
    words=("data",),
)
def npz_data(folder, arrays):
    return npz(folder, **{"x": FEATURES, "y": LABELS, **arrays})


def npy(folder, labels: Any, text: str | None = None):
    np.save(folder / "x.npy", FEATURES)
    if text is not None:
        (folder / labels).write_text(text)
    return lambda: open_data(folder / "x.npy", labels=labels and folder / labels)


@several(
    "ArrayError",
    {
        "without labels": ((None, None), "x.npy has no labels", "--labels"),
        "with too few": (("l.csv", "label\na\nb\n"), "2 labels for 10 rows"),
        "with a row beyond the end": (("l.csv", "row,label\n0,a\n10,b\n"), "line 3", "'10'"),
        "with a row twice": (("l.csv", "row,label\n0,a\n0,b\n"), "line 3", "each once"),
        "that are no array": (("l.npy", "hello"), "l.npy", "not an array"),
    },
)
def npy_labels(folder, arguments):
    return npy(folder, *arguments)


@case("ArrayError", "x.npy", "not an array that can be read safely")
def npy_with_a_hostile_pickle(folder):
    np.save(folder / "x.npy", np.array([Hostile(folder)], dtype=object), allow_pickle=True)
    np.save(folder / "y.npy", LABELS)
    return lambda: open_data(folder / "x.npy", labels=folder / "y.npy")


@case("ArrayError", "x.npy", "not an array that can be read safely")
def npy_cut_short(folder):
    opener = npy(folder, "l.csv", "label\na\nb\n")
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-1])
    return opener


# ---- folders of images


def two_classes(folder: Path) -> Path:
    write_image(folder / "a" / "1.png", PIXELS)
    write_image(folder / "b" / "1.png", PIXELS)
    return folder


@case("FolderError", "expected a folder per class", "found none")
def folder_that_is_empty(folder):
    return folder


@case("FolderError", "no example has class 'c'", "has no images")
def folder_with_an_empty_class(folder):
    (two_classes(folder) / "c").mkdir()
    return folder


@case("FolderError", "found loose.png beside them", "labels.csv")
def folder_with_a_loose_image(folder):
    write_image(two_classes(folder) / "loose.png", PIXELS)
    return folder


@case("FolderError", "no example has class 'c'", "has no images (.bmp, ")
def folder_with_notes_alone(folder):
    (two_classes(folder) / "c").mkdir()
    (folder / "c" / "notes.txt").write_text("hello")
    return folder


@case("FolderError", "train holds folders, as if of classes", "name it as the data")
def folder_of_parts(folder):
    two_classes(folder / "train")
    two_classes(folder / "val")
    (folder / "train" / "notes.txt").write_text("hello")
    return folder


@case("FolderError", "gone.png is a link to ", "nowhere.png, which is not there")
def folder_with_a_dangling_link(folder):
    (two_classes(folder) / "a" / "gone.png").symlink_to(folder / "nowhere.png")
    return folder


@case("FolderError", "gone.png is a link to ", "nowhere.png, which is not there")
def labels_beside_a_dangling_link(folder):
    (folder / "gone.png").symlink_to(folder / "nowhere.png")
    return labelled(folder, "file,label\na.png,x\nb.png,y\n")


@case("FolderError", "c is a link to ", "which is not there")
def folder_with_a_class_that_is_a_dangling_link(folder):
    (two_classes(folder) / "c").symlink_to(folder / "nowhere")
    return folder


@case("FolderError", "'z'", "not among the training folders")
def folder_with_a_test_class_of_its_own(folder):
    write_image(two_classes(folder) / "test" / "z" / "1.png", PIXELS)
    return folder


@case("DataError", "at least two classes", "got 1 ('a')")
def folder_with_one_class(folder):
    write_image(folder / "a" / "1.png", PIXELS)
    return folder


@several(
    "ImageError",
    {"of noise": (b"\x00\x01 noise " * 50,), "of nothing": (b"",), "that is a program": (b"#!/bin/sh\nexit 1\n",)},
    words=("2.png", "cannot be decoded"),
)
def image(folder, content):
    (two_classes(folder) / "a" / "2.png").write_bytes(content)
    return folder


@several("ImageError", {"png": ("png",), "jpeg": ("jpeg",)}, words=("cut.", "cannot be decoded"))
def image_cut_in_half(folder, suffix):
    path = write_image(
        two_classes(folder) / "a" / f"cut.{suffix}", np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    )
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return folder


@case("ImageError", "wide.png has 16×8 pixels", "--image-size")
def images_of_two_sizes(folder):
    write_image(two_classes(folder) / "b" / "wide.png", np.tile(PIXELS, (1, 2, 1)))
    return folder


@case("ImageError", "bomb.png has 10000×6000 pixels", "50,000,000", "save it smaller")
def image_that_is_a_bomb(folder):
    two_classes(folder)
    Image.new("1", (10_000, 6000)).save(folder / "a" / "bomb.png")
    return folder


@case("ImageError", "bomb.png has more than 50,000,000 pixels; save it smaller")
def image_that_is_a_very_large_bomb(folder):
    path = write_image(two_classes(folder) / "a" / "bomb.png", PIXELS)
    data = bytearray(path.read_bytes())
    data[16:24] = struct.pack(">II", 2_000_000_000, 2_000_000_000)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    path.write_bytes(data)
    return folder


@case("ImageError", "deep.tiff", "32 bits")
def image_of_floating_point(folder):
    write_image(two_classes(folder) / "a" / "deep.tiff", np.zeros((8, 8), np.float32))
    return folder


@several("ImageError", {"nothing": (0,), "a million": (1_000_000,)}, words=("between 1 and 4096",))
def image_size_of(folder, size):
    two_classes(folder)
    return lambda: open_data(folder, image_size=size)


def labelled(folder, csv: str | bytes):
    for name in "ab":
        write_image(folder / f"{name}.png", PIXELS)
    (folder / "notes.txt").write_text("hello")
    (folder / "labels.csv").write_bytes(csv if isinstance(csv, bytes) else csv.encode())
    return folder


@several(
    "FolderError",
    {
        "a missing file": ("file,label\na.png,x\nc.png,y\n", "line 3", "'c.png' is not in"),
        "a file twice": ("file,label\na.png,x\na.png,y\n", "line 3", "'a.png' is named twice"),
        "a file outside": ("file,label\n../a.png,x\n", "line 2", "'../a.png' is not a file inside"),
        "an absolute path": ("file,label\n/etc/passwd,x\n", "line 2", "'/etc/passwd'"),
        "a blank file": ("file,label\n,x\n", "line 2", "''"),
        "a file that is no image": ("file,label\nnotes.txt,x\n", "line 2", "'notes.txt' is not an image"),
    },
)
def labels_name(folder, csv):
    return labelled(folder, csv)


@several(
    "CsvError",
    {
        "without a file column": ("name,label\na.png,x\n", "no column 'file'", "'name', 'label'"),
        "without a label column": ("file,kind\na.png,x\n", "no column 'label'"),
        "that are empty": ("", "is empty"),
        "with ragged rows": ("file,label\na.png\n", "line 2", "expected 2 cells, got 1"),
        "that are not UTF-8": ("file,label\na.png,größe\n".encode("latin1"), "not UTF-8", "0xf6"),
        "with an open quote": ('file,label\na.png,"x\n', "line 2", "unexpected end"),
        "with a NUL": (b"file,label\na.png,\x00x\nb.png,", "line 2", "NUL"),
    },
    words=("labels.csv",),
)
def labels_csv(folder, csv):
    return labelled(folder, csv)


@case("DataError", "at least two classes")
def labels_of_one_class(folder):
    return labelled(folder, "file,label\na.png,x\nb.png,x\n")


@case("FolderError", "there are no images")
def labels_without_images(folder):
    (folder / "labels.csv").write_text("file,label\n")
    return folder


@case("CsvError", "nowhere.csv", "No such file")
def labels_that_are_not_there(folder):
    two_classes(folder)
    return lambda: open_data(folder, labels=folder / "nowhere.csv")


# ---- tables


@several(
    "CsvError",
    {
        "without a label column": ("a,b\n1,2\n", "no column 'label'", "'a', 'b'"),
        "with ragged rows": ("a,label\n1,x\n1,2,3\n", "line 3", "expected 2 cells, got 3"),
        "with a column twice": ("a,a,label\n1,2,x\n", "'a' is there twice"),
        "that is not UTF-8": (b"a,label\n1,\xe9\n", "not UTF-8", "0xe9"),
        "that is empty": ("", "is empty"),
        "with an open quote": ('a,label\n1,"x\n2,y\n', "unexpected end"),
    },
    words=("t.csv",),
)
def table(folder, csv):
    (folder / "t.csv").write_bytes(csv if isinstance(csv, bytes) else csv.encode())
    return folder / "t.csv"


several(
    "TableError",
    {
        "with a word": ("a,b,label\n1,2,x\n3,red,y\n", "line 3", "'b'", "'red'"),
        "with a word among numbers and gaps": ("a,label\n1,x\n,x\n3,y\nabc,y\n", "line 5", "'a'", "got 'abc'; if"),
        "with a decimal comma": ("a;b;label\n1;red;x\n2;red;x\n12,5;;y\n", "line 4", "got '12,5' (decimals", "point"),
        "with a column of gaps": ("a,b,label\n1,,x\n2,NA,y\n", "'b' has no value in any row", "--ignore-columns b"),
        "with infinity beside words": ("a,b,label\n1,u,x\n2,v,y\ninf,,y\n", "line 4", "'a'", "inf is not a finite"),
        "with a name for every row": (
            "my name,label\n" + "".join(f"n{i},{'xy'[i % 2]}\n" for i in range(11)),
            "'my name' holds 11 different words in 11 rows",
            "--ignore-columns 'my name'",
        ),
        "with too many words": (
            "a,label\n" + "".join(f"n{i % 51},{'xy'[i % 2]}\n" for i in range(2000)),
            "'a' holds 51 different words in 2,000 rows, too many to learn from",
        ),
        "with texts": (
            "a,label\n" + "".join(f"note {i},{'xy'[i % 2]}\n" for i in range(5000)),
            "'a' holds more than 1,000 different words in 5,000 rows",
        ),
        "with infinity": ("a,label\n-inf,x\n2,y\n", "line 2", "-inf is not a finite number"),
        "with a number too large": ("a,label\n1e39,x\n2,y\n", "line 2", "1e39"),
        "with a header alone": ("a,label\n", "0 rows"),
        "with labels alone": ("label\nx\ny\n", "0 features"),
    },
    words=("t.csv",),
)(table)


def parquet(folder, **columns):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


@several(
    "TableError",
    {
        "with bytes": ({"a": [b"x", b"y"], "label": [0, 1]}, "'a' is binary; features must be numbers or words"),
        "with a word among numbers": ({"a": ["1", "2", "x"], "label": [0, 1, 0]}, "row 2, column 'a'", "got 'x'; if"),
        "with a column of gaps": ({"a": [1, 2], "b": [None, None], "label": [0, 1]}, "'b' has no value in any row"),
        "with infinity and a gap": ({"a": [1.0, None, float("inf")], "label": [0, 1, 1]}, "row 2, column 'a': inf is"),
        "with labels alone": ({"label": [0, 1]}, "0 features"),
    },
    words=("t.parquet",),
)
def parquet_table(folder, columns):
    return parquet(folder, **columns)


@case("CsvError", "t.parquet", "no column 'label'")
def parquet_without_labels(folder):
    return parquet(folder, a=[1, 2])


@case("TableError", "t.parquet", "not a Parquet file")
def parquet_that_is_none(folder):
    (folder / "t.parquet").write_bytes(b"PAR1 but not really PAR1")
    return folder / "t.parquet"


# ---- CIFAR


class Hostile:
    """Unpickling this would leave a file behind."""

    def __init__(self, folder: Path) -> None:
        self.command = f"touch {folder / 'canary'}"

    def __reduce__(self):
        return os.system, (self.command,)


class HostileEval(Hostile):
    def __reduce__(self):
        return eval, (f"__import__('os').system({self.command!r})",)


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


# ---- Fashion-MNIST, STL-10, mini-ImageNet


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


# ---- what was asked for


@several(
    "DataError",
    {
        "nothing that exists": (("nowhere.csv",), "nowhere.csv is neither a file or folder nor a benchmark", "digits"),
        "a benchmark misspelt": (("cifar-10",), "nor a benchmark", "cifar10"),
    },
)
def asking_for(folder, arguments):
    return lambda: open_data(*arguments)


@case("NotThereError", "cifar100 is not under", "cifar-100-python.tar.gz", "cadr data get cifar100", "CADR_DATA")
def asking_for_a_benchmark_that_is_not_there(folder):
    return lambda: open_data("cifar100", root=folder)


@case("DataError", "data.docx", "expected a folder, or a file that ends in")
def asking_for_a_file_of_another_kind(folder):
    (folder / "data.docx").write_bytes(b"PK")
    return folder / "data.docx"


@case("DataError", "holds its own labels")
def asking_for_labels_of_labelled_data(folder):
    path = npz(folder, x=FEATURES, y=LABELS)
    return lambda: open_data(path, labels="labels.csv")


# ---- splits

POOL = Pool(FEATURES, LABELS, ("a", "b"), "tiny")
SPLIT = make_split(POOL, PROTOCOLS["mcar"](n=4), seed=1)


def split_file(folder: Path, content: Any) -> Callable[[], Any]:
    path = folder / "split.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return lambda: apply(POOL, Split.read(path))


SPLIT_CONTENT = {**SPLIT._content(), "sha256": SPLIT.sha256}


@several(
    "SplitError",
    {
        "that is text": (b"hello", "not a split", "JSON"),
        "that is binary": (b"\xff\xfe\x00", "not a split"),
        "nested without end": (b"[" * 100_000, "not a split"),
        "that is a list": ([1, 2], "expected an object, got list"),
        "without its rows": ({k: v for k, v in SPLIT_CONTENT.items() if k != "labelled"}, "lacks labelled"),
        "with something more": ({**SPLIT_CONTENT, "extra": 1}, "unknown 'extra'"),
        "with another seed": ({**SPLIT_CONTENT, "seed": 2}, "has been changed"),
        "with another hash": ({**SPLIT_CONTENT, "sha256": "0" * 64}, "has been changed"),
        "with a seed that is text": ({**SPLIT_CONTENT, "seed": "1"}, "seed should be a int"),
        "with rows twice": ({**SPLIT_CONTENT, "labelled": [1, 1]}, "labelled should be rising"),
        "without any row": ({**SPLIT_CONTENT, "labelled": []}, "at least one"),
        "with rows that are text": ({**SPLIT_CONTENT, "labelled": ["1"]}, "whole numbers"),
        "with negative rows": ({**SPLIT_CONTENT, "labelled": [-1, 2]}, "whole numbers"),
        "with a stream of text": ({**SPLIT_CONTENT, "unlabelled": "some"}, "unlabelled should be a list"),
    },
    words=("split.json",),
)
def split(folder, content):
    return split_file(folder, content)


@case("SplitError", "split.json", "No such file")
def split_that_is_not_there(folder):
    return lambda: Split.read(folder / "split.json")
