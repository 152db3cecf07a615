"""Answers are where the next training finds them, at once, and can be taken back; nothing else changes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cadr.config import Config
from cadr.data import open_data
from cadr.errors import CadrError
from cadr.label.answers import answers_of, labels_file


def config(data, **source):
    return Config.from_dict({"data": str(data), "algorithm": "cadr", **source})


def opened(data, **source):
    """A pool, and where answers about it go."""
    pool = open_data(data, **source)
    return pool, answers_of(config(data, **source), pool)


def labels(pool):
    names = pool.identifiers or [str(i) for i in range(len(pool.labels))]
    return {names[i]: pool.class_names[c] for i, c in enumerate(pool.labels) if c >= 0}


def pictures(root, *names):
    for i, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4, 3), i, dtype=np.uint8)).save(root / name)
    return root


def everything(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("inside", [True, False])
def test_a_folder_with_a_csv(inside, tmp_path):
    root = pictures(tmp_path / "photos", "a.png", "b, 2.png", "c.png", "é.png")
    csv = (root if inside else tmp_path) / "labels.csv"
    csv.write_bytes(b'file;label;note\r\na.png;dark;1\r\n"b, 2.png";;"x;y"\r\nc.png;light;\r\n')
    source = {} if inside else {"labels": str(csv)}
    before = everything(tmp_path)
    pool, answers = opened(root, **source)
    rows = {name: i for i, name in enumerate(pool.identifiers)}
    answers.give({rows["b, 2.png"]: "dark"})
    assert csv.read_bytes() == b'file;label;note\r\na.png;dark;1\r\n"b, 2.png";dark;"x;y"\r\nc.png;light;\r\n'
    answers.give({rows["é.png"]: "light"})
    assert csv.read_bytes().endswith("\r\né.png;light;\r\n".encode())
    assert labels(open_data(root, labels=answers.labels)) == {
        "a.png": "dark",
        "b, 2.png": "dark",
        "c.png": "light",
        "é.png": "light",
    }
    answers.take_back(rows["é.png"])
    answers.take_back(rows["b, 2.png"])
    assert everything(tmp_path) == before


def test_a_label_that_somebody_gave_meanwhile_is_kept(tmp_path):
    root = pictures(tmp_path / "photos", "a.png", "b.png", "c.png")
    csv = tmp_path / "labels.csv"
    csv.write_text("file,label\na.png,dark\nb.png,light\n", encoding="utf-8")
    _, answers = opened(root, labels=str(csv))
    csv.write_text("file,label\na.png,dark\nb.png,light\n.\\c.png,light\n", encoding="utf-8")  # as Windows names it
    with pytest.raises(CadrError, match=r"'c\.png' was labelled 'light' meanwhile, which is kept"):
        answers.give({2: "dark"})
    answers.give({2: "light"})
    assert csv.read_text(encoding="utf-8").count("c.png") == 1


def test_a_folder_per_class(tmp_path):
    names = ["ash/1.png", "ash/2.png", "beech/1.png", "unlabelled/1.png", "unlabelled/deep/3.png"]
    root = pictures(tmp_path / "trees", *names)
    before = everything(tmp_path)
    _, answers = opened(root)
    assert answers.labels is None
    answers.give({3: "ash", 4: "beech"})  # ash/1.png is taken
    after = labels(open_data(root))
    assert after == {
        "ash/1.png": "ash",
        "ash/1-2.png": "ash",
        "ash/2.png": "ash",
        "beech/1.png": "beech",
        "beech/3.png": "beech",
    }
    answers.take_back(4)
    answers.take_back(3)
    assert everything(tmp_path) == before
    with pytest.raises(CadrError, match=r"there is no folder .*oak; make it"):
        answers.give({3: "oak"})


def test_where_there_are_no_links_a_file_is_renamed(tmp_path, monkeypatch):
    root = pictures(tmp_path / "trees", "ash/1.png", "beech/1.png", "unlabelled/1.png")
    _, answers = opened(root)

    def refuse(*arguments, **options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    answers.give({2: "ash"})
    assert (root / "ash" / "1-2.png").exists()
    assert not (root / "unlabelled" / "1.png").exists()
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(CadrError, match="cannot be moved"):
        answers.take_back(2)
    assert (root / "ash" / "1-2.png").exists()


def test_a_table_is_not_written_to(tmp_path):
    table = tmp_path / "trees.csv"
    table.write_text("id,size,label\nt0,1.5,ash\nt1,2.5,beech\nt2,3.5,\nt3,4.5,\n", encoding="utf-8")
    before = table.read_bytes()
    _, answers = opened(table, ignore_columns=("id",))
    assert answers.labels == tmp_path / "trees.labels.csv"
    assert not answers.labels.exists()  # before there is an answer
    answers.give({3: "ash"})
    lines = answers.labels.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "row,check,label"
    assert lines[1].startswith("3,")
    assert lines[1].endswith(",ash")
    answers.give({2: "beech"})
    more = open_data(table, ignore_columns=("id",), labels=answers.labels)
    assert labels(more) == {"t0": "ash", "t1": "beech", "t2": "beech", "t3": "ash"}
    answers.take_back(2)
    assert answers.labels.read_text(encoding="utf-8").splitlines() == lines
    assert table.read_bytes() == before


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_arrays_and_parquet_get_a_file_beside_them(kind, tmp_path):
    x, y = np.arange(8.0).reshape(4, 2) ** 2, np.array(["ash", "beech", "", ""])
    path = tmp_path / f"trees.{kind}"
    if kind == "npz":
        np.savez(path, x=x, y=y)
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"a": x[:, 0], "b": x[:, 1], "label": [label or None for label in y]}
        parquet.write_table(pa.table(columns), path)
    _, answers = opened(path)
    answers.give({2: "beech"})
    assert labels(open_data(path, labels=answers.labels)) == {"0": "ash", "1": "beech", "2": "beech"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("label\nash\nbeech\n\n\n", "label\nash\nbeech\n\nash\n"),
        ("name,label\na,ash\nb,beech\nc,\nd,\n", "name,label\na,ash\nb,beech\nc,\nd,ash\n"),
        ("row,label\n1,beech\n0,ash\n", "row,label\n1,beech\n0,ash\n3,ash\n"),
    ],
)
def test_the_csv_of_an_npy(content, expected, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(8.0).reshape(4, 2) ** 2)
    csv = tmp_path / "names.csv"
    csv.write_text(content, encoding="utf-8")
    _, answers = opened(tmp_path / "x.npy", labels=str(csv))
    answers.give({3: "ash"})
    assert csv.read_text(encoding="utf-8") == expected
    assert labels(open_data(tmp_path / "x.npy", labels=csv)) == {"0": "ash", "1": "beech", "3": "ash"}
    answers.take_back(3)
    assert csv.read_text(encoding="utf-8") == content
    csv.write_text("label\nash\n", encoding="utf-8")
    if "row" not in content:
        with pytest.raises(CadrError, match="has no line for row 3 any more"):
            answers.give({3: "ash"})


def test_what_cannot_be_added_to_is_copied(tmp_path):
    """Labels in an .npy, and the export of an annotation tool."""
    np.save(tmp_path / "x.npy", np.arange(8.0).reshape(4, 2) ** 2)
    np.save(tmp_path / "y.npy", np.array(["ash", "beech", "", ""]))
    _, answers = opened(tmp_path / "x.npy", labels=str(tmp_path / "y.npy"))
    answers.give({3: "ash"})
    assert answers.labels == tmp_path / "y.labels.csv"
    assert labels(open_data(tmp_path / "x.npy", labels=answers.labels)) == {"0": "ash", "1": "beech", "3": "ash"}

    root = pictures(tmp_path / "photos", "a.png", "b.png", "c.png")
    tasks = [
        {"data": {"file": name}, "annotations": [{"result": [{"type": "choices", "value": {"choices": [label]}}]}]}
        for name, label in (("a.png", "dark"), ("c.png", "light"))
    ]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks), encoding="utf-8")
    _, answers = opened(root, labels=str(export))
    answers.give({1: "light"})
    assert answers.labels == tmp_path / "export.labels.csv"
    assert labels(open_data(root, labels=answers.labels)) == {"a.png": "dark", "b.png": "light", "c.png": "light"}


def test_where_answers_go(tmp_path):
    (tmp_path / "trees" / "unlabelled").mkdir(parents=True)
    export = str(tmp_path / "export.json")
    assert labels_file(config(tmp_path / "trees")) is None
    assert labels_file(config(tmp_path / "trees", labels=export)) is None  # they move, and the export adds to them
    assert labels_file(config(tmp_path / "x.csv", labels="more.tsv")) == Path("more.tsv")
    assert labels_file(config(tmp_path / "x.csv", labels=export)) == tmp_path / "export.labels.csv"
