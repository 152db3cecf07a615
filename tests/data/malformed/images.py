"""Folders of images, and the CSV files that label them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from tests.data.loose import open_data
from tests.data.malformed.case import PIXELS, case, several
from tests.data.writers import (
    write_image,
)


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


@case("FolderError", "found loose.HEIC beside them", "labels.csv")
def folder_with_a_loose_image_of_a_kind_that_is_not_read(folder):
    (two_classes(folder) / "loose.HEIC").write_bytes(b"ftypheic")
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
        "a file twice": ("file,label\na.png,x\na.png,y\n", "'a.png' is labelled 'x' in line 2", "'y' in line 3"),
        "a file outside": ("file,label\n../a.png,x\n", "line 2", "expected a name relative to", "'../a.png'"),
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
