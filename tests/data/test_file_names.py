"""The file names in a CSV of labels: blanks, backslashes and accents are as they are where a file is called so."""

import unicodedata

import pytest
from PIL import Image

from cadr.cli.main import main
from cadr.data.sources.base import Wanted
from cadr.data.sources.registry import open_blocks
from cadr.errors import DataError
from cadr.utils.text import shown
from tests.data.loose import open_data
from tests.report.own_runs import TINY, read_csv, write_csv, write_images


def photos(folder, *names):
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 6)).save(folder / name)
    return folder


def labels_of(pool):
    return {name: pool.class_names[c] for name, c in zip(pool.identifiers, pool.labels, strict=True) if c >= 0}


def test_a_blank_before_a_name_is_part_of_it_where_a_file_is_called_so(tmp_path):
    folder = photos(tmp_path / "photos", "1.png", " 1.png", "2.png", "3.png", "old /1.png")
    rows = [[" 1.png", "a"], [" 2.png ", "b"], ["3.png", "b"], ["old /1.png", "a"]]
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], rows)
    found = labels_of(open_data(folder, labels=labels))
    assert found == {" 1.png": "a", "2.png": "b", "3.png": "b", "old /1.png": "a"}
    opened = open_blocks(str(folder), Wanted((6, 6, 3), ("a", "b")), labels)
    (block,) = opened.blocks
    assert block.labels is not None
    assert {n: c for n, c in zip(block.kept[0], block.labels, strict=True) if c} == found


def test_a_name_that_only_a_file_with_a_blank_has_is_not_there(tmp_path):
    folder = photos(tmp_path / "photos", " 1.png", "2.png")
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], [["1.png", "a"], ["2.png", "b"]])
    with pytest.raises(DataError, match=r"line 2: '1\.png' is not in"):
        open_data(folder, labels=labels)


def test_what_a_run_writes_about_such_a_file_is_read_again(tmp_path):
    write_images(tmp_path / "photos", 20)
    Image.new("RGB", (8, 8), (220, 220, 220)).save(tmp_path / "photos" / " 000.png")  # 000.png is a dark one
    rows = [[f"{i:03}.png", "light" if i % 2 else "dark"] for i in range(10)]
    labels = write_csv(tmp_path / "labels.csv", ["file", "label"], rows)
    data, run, ask = str(tmp_path / "photos"), str(tmp_path / "run"), tmp_path / "ask.csv"
    assert main(["train", data, "--labels", str(labels), *TINY, "--out", run]) == 0
    assert main(["report", run, "--out", str(tmp_path / "r.html"), "--to-label", str(ask)]) == 0
    assert main(["predict", run, data, "--out", str(tmp_path / "p.csv")]) == 0
    for table in (ask, tmp_path / "p.csv"):
        assert " 000.png" in [row["file"] for row in read_csv(table)]
    filled = [[row["file"], "light" if row["file"] == " 000.png" else ""] for row in read_csv(ask)]
    write_csv(labels, ["file", "label"], [*rows, *filled])
    found = labels_of(open_data(tmp_path / "photos", labels=labels))
    assert (found["000.png"], found[" 000.png"]) == ("dark", "light")


def test_a_name_with_blanks_at_its_ends_is_quoted_in_sentences(tmp_path):
    assert shown("old photos/1.png") == "old photos/1.png"
    assert shown("old /1.png") == "'old /1.png'"
    folder = photos(tmp_path / "photos", "1.png", "2.png")
    (folder / " 1.png").write_bytes(b"no picture")
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], [["1.png", "a"], ["2.png", "b"]])
    with pytest.raises(DataError, match=r"photos/ 1\.png' cannot be decoded"):
        open_data(folder, labels=labels)


def test_a_line_that_is_there_twice_says_nothing_new(tmp_path):
    folder = photos(tmp_path / "photos", "1.png", "2.png", "3.png")
    rows = [["1.png", "4"], ["2.png", "5"], ["1.png", "4"], [" 2.png", "5.0 "], ["3.png", ""], ["3.png", ""]]
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], rows)
    assert labels_of(open_data(folder, labels=labels)) == {"1.png": "4", "2.png": "5"}


def test_backslashes_part_folders_where_no_file_is_called_so(tmp_path):
    folder = photos(tmp_path / "photos", "site 1/may/1.png", "site 1/2.png", "3\\4.png", "3/4.png")
    rows = [["site 1\\may\\1.png", "a"], [" site 1\\2.png ", "b"], ["3\\4.png", "b"]]
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], rows)
    found = labels_of(open_data(folder, labels=labels))
    assert found == {"site 1/may/1.png": "a", "site 1/2.png": "b", "3\\4.png": "b"}


@pytest.mark.parametrize(("written", "there"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_may_be_composed_in_the_table_and_not_on_the_disk(tmp_path, written, there):
    name = "Forêt/1.png"
    folder = photos(tmp_path / "photos", unicodedata.normalize(there, name), "2.png")
    rows = [[unicodedata.normalize(written, name), "a"], ["2.png", "b"]]
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], rows)
    assert labels_of(open_data(folder, labels=labels)) == {unicodedata.normalize(there, name): "a", "2.png": "b"}


@pytest.mark.parametrize(("folders", "files"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_folder_may_be_spelt_otherwise_than_the_files_in_it(tmp_path, folders, files):
    there = f"{unicodedata.normalize(folders, 'été')}/{unicodedata.normalize(files, 'forêt.png')}"
    folder = photos(tmp_path / "photos", there, "2.png")
    rows = [[unicodedata.normalize("NFC", "été\\forêt.png"), "a"], ["2.png", "b"]]
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], rows)
    assert labels_of(open_data(folder, labels=labels)) == {there: "a", "2.png": "b"}
    write_csv(labels, ["file", "label"], [["2.png", "b"], ["été/forêts.png", "a"]])
    with pytest.raises(DataError, match=r"line 3: 'été/forêts\.png' is not in"):
        open_data(folder, labels=labels)


@pytest.mark.parametrize("name", ["../other/1.png", "..\\other\\1.png", "{folder}/1.png"])
def test_names_are_relative_to_the_folder_and_stay_in_it(tmp_path, name):
    folder, name = photos(tmp_path / "photos", "1.png"), name.format(folder=tmp_path / "photos")
    photos(tmp_path / "other", "1.png")
    labels = write_csv(tmp_path / "l.csv", ["file", "label"], [[name, "a"]])
    with pytest.raises(DataError, match=r"line 2: expected a name relative to .*photos, got"):
        open_data(folder, labels=labels)
