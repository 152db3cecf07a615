"""Folders of pictures are looked through to the bottom, links included, and only pictures count."""

import os

import numpy as np
import pytest

from cadr.data.sources.folder import files_under
from cadr.errors import DataError
from tests.data.loose import open_data
from tests.data.writers import write_image

PIXELS = np.zeros((4, 4, 3), np.uint8)


def test_classes_may_have_folders_and_other_files_in_them(tmp_path):
    for name in ("robin/2024/may/a.png", "robin/b.png", "wren/2024/a.png", "unlabelled/x/c.png", "test/wren/y/d.png"):
        write_image(tmp_path / name, PIXELS)
    for name in ("robin/notes.txt", "robin/2024/film.mp4", "wren/Thumbs.db", "unlabelled/.DS_Store", "readme.md"):
        (tmp_path / name).write_bytes(b"hello")
    pool = open_data(tmp_path)
    assert pool.class_names == ("robin", "wren")
    assert pool.identifiers == ("robin/2024/may/a.png", "robin/b.png", "wren/2024/a.png", "unlabelled/x/c.png")
    assert pool.labels.tolist() == [0, 0, 1, -1]
    assert pool.test_labels.tolist() == [1]


def test_links_are_followed_in_both_layouts(tmp_path):
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "photos"
    for name in ("robins/a.png", "wrens/b.png"):
        write_image(elsewhere / name, PIXELS)
    root.mkdir()
    (root / "robin").symlink_to(elsewhere / "robins")
    (root / "wren").mkdir()
    (root / "wren" / "more").symlink_to(elsewhere / "wrens")
    (root / "wren" / "c.png").symlink_to(elsewhere / "wrens" / "b.png")
    expected = ("robin/a.png", "wren/c.png", "wren/more/b.png")
    assert open_data(root).identifiers == expected
    (tmp_path / "labels.csv").write_text("file,label\nrobin/a.png,x\nwren/more/b.png,y\n")
    pool = open_data(root, labels=tmp_path / "labels.csv")
    assert pool.identifiers == expected
    assert pool.labels.tolist() == [0, -1, 1]


def test_links_that_lead_in_a_circle_end(tmp_path):
    write_image(tmp_path / "b" / "a.png", PIXELS)
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "a").symlink_to(tmp_path / "b")
    assert files_under(tmp_path) == [tmp_path / "b" / "a.png"]


def test_pictures_of_a_kind_that_is_not_read_are_not_left_out_silently(tmp_path):
    for name in ("1.png", "2.png", "3.jpg"):
        write_image(tmp_path / "photos" / name, PIXELS)
    for name in ("3.HEIC", "4.CR2"):  # the same as 3.jpg, and what cameras write beside their pictures
        (tmp_path / "photos" / name).write_bytes(b"ftypheic")
    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\n1.png,a\n2.png,b\n")
    assert open_data(tmp_path / "photos", labels=labels).identifiers == ("1.png", "2.png", "3.jpg")
    (tmp_path / "photos" / "may").mkdir()
    (tmp_path / "photos" / "may" / "3.HEIC").write_bytes(b"ftypheic")
    said = r"may/3\.HEIC cannot be decoded as an image \(it is none of PNG, JPEG, .*\); save it as JPEG or"
    with pytest.raises(DataError, match=said):
        open_data(tmp_path / "photos", labels=labels)
    labels.write_text("file,label\n1.png,a\nmay/3.HEIC,b\n")
    with pytest.raises(DataError, match=said):
        open_data(tmp_path / "photos", labels=labels)


def test_what_is_called_like_a_picture_and_is_none_is_passed_over(tmp_path):
    write_image(tmp_path / "photos" / "album.png" / "1.png", PIXELS)
    os.mkfifo(tmp_path / "photos" / "2.png")
    assert files_under(tmp_path / "photos") == [tmp_path / "photos" / "album.png" / "1.png"]
