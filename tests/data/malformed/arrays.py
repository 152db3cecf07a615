"""Arrays: .npz and .npy files."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np

from tests.data.loose import open_data
from tests.data.malformed.case import FEATURES, LABELS, case, npz, several
from tests.data.malformed.hostile import Hostile


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


def no_unicode(count):
    """Strings as a damaged file has them: signs beyond the last one of Unicode."""
    return np.full(count, 0x7FFFFFFF, dtype=np.uint32).view("U1")


@case("ArrayError", "data.npz", "no Unicode", "0x7fffffff")
def npz_with_labels_that_are_no_unicode(folder):
    return npz(folder, x=FEATURES, y=no_unicode(len(FEATURES)))


@case("ArrayError", "data.npz", "no Unicode")
def npz_with_names_that_are_no_unicode(folder):
    return npz(folder, x=FEATURES, y=LABELS, class_names=no_unicode(2))


@case("ArrayError", "y.npy", "no Unicode")
def npy_with_labels_that_are_no_unicode(folder):
    np.save(folder / "x.npy", FEATURES)
    np.save(folder / "y.npy", no_unicode(len(FEATURES)))
    return lambda: open_data(folder / "x.npy", labels=folder / "y.npy")


@case("ArrayError", "y.csv, line 3", "is not a number below 10")
def csv_beside_arrays_with_a_row_of_five_thousand_digits(folder):
    np.save(folder / "x.npy", FEATURES)
    (folder / "y.csv").write_text(f"row,label\n0,a\n{'1' * 5000},b\n")
    return lambda: open_data(folder / "x.npy", labels=folder / "y.csv")


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
