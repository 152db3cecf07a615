"""Data sets of Hugging Face: saved folders and the cache, pictures and tables, splits, and what is refused."""

import io
import json
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from cadr.cli.main import main
from cadr.data import open_data

datasets = pytest.importorskip("datasets", reason="datasets is not installed")
TRUTH = np.arange(60) % 3
NAMES = ["ant", "bee", "cat"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """One of our own, as load_dataset leaves it, without what it would need a network for."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    return folder


def table(labels=None):
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 3)) + 4 * np.eye(3)[TRUTH]
    labels = np.where(np.arange(60) < 24, TRUTH, -1).tolist() if labels is None else labels
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "label": labels}
    features = {name: datasets.Value("float64") for name in "abc"} | {"label": datasets.ClassLabel(names=NAMES)}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def pictures(sizes=(8,)):
    cells = []
    for i in range(60):
        content, side = io.BytesIO(), sizes[i % len(sizes)]
        Image.new("RGB", (side, side), (80 * int(TRUTH[i]) + 10, i, 0)).save(content, "PNG")
        cells.append({"bytes": content.getvalue(), "path": None})
    labels = [NAMES[c] if i < 24 else None for i, c in enumerate(TRUTH)]
    features = datasets.Features({"image": datasets.Image(), "kind": datasets.Value("string")})
    return datasets.Dataset.from_dict({"image": cells, "kind": labels}, features=features)


def in_cache(folder, name, config="default", splits=("train", "test")):
    """The layout of the cache of `datasets`."""
    home = folder / name / config / "0.0.0" / "abc"
    home.mkdir(parents=True)
    for split in splits:
        table().select(range(60 if split == "train" else 20)).save_to_disk(home / "tmp")
        (arrow,) = (home / "tmp").glob("*.arrow")
        shutil.move(arrow, home / f"{name.rpartition('___')[2]}-{split}.arrow")
        shutil.rmtree(home / "tmp")
    (home / "dataset_info.json").write_text("{}")
    return home


def test_a_table_that_was_saved(tmp_path):
    table().save_to_disk(tmp_path / "saved")
    pool = open_data(tmp_path / "saved")
    assert pool.class_names == tuple(NAMES)
    np.testing.assert_array_equal(pool.labels, np.where(np.arange(60) < 24, TRUTH, -1))
    np.testing.assert_array_equal(pool.examples[:, 0], np.asarray(table()["a"], dtype=np.float32))
    assert pool.feature_names == ("a", "b", "c")
    assert open_data(f"hf:{tmp_path / 'saved'}").sha256 == pool.sha256


def test_rows_that_were_selected_and_texts_for_labels(tmp_path):
    whole = pictures()
    whole.select(range(30, -1, -1)).save_to_disk(tmp_path / "saved")
    pool = open_data(tmp_path / "saved", label_column="kind")
    assert pool.examples.shape == (31, 8, 8, 3)
    assert pool.examples[:, 0, 0, 1].tolist() == list(range(30, -1, -1))
    assert (pool.labels[:7] == -1).all()
    assert pool.class_names == tuple(NAMES)


def test_splits(tmp_path):
    splits = datasets.DatasetDict(train=table(), test=table().select(range(20)))
    splits.save_to_disk(tmp_path / "both")
    assert len(open_data(tmp_path / "both").labels) == 60
    assert len(open_data(tmp_path / "both" / "test").labels) == 20
    assert len(open_data(f"hf:{tmp_path / 'both'}@test").labels) == 20


def test_of_the_cache(cache):
    in_cache(cache, "somebody___my_data")
    in_cache(cache, "plain", "small", ("train",))
    in_cache(cache, "plain", "large", ("train",))
    for name in ("somebody/my_data", "somebody/MyData"):
        assert len(open_data(f"hf:{name}").labels) == 60
        assert len(open_data(f"hf:{name}@test").labels) == 20
    assert len(open_data("hf:plain:large").labels) == 60


def test_from_training_to_prediction(tmp_path, cache, monkeypatch):
    in_cache(cache, "somebody___my_data")
    monkeypatch.chdir(tmp_path)
    assert main(["diagnose", "hf:somebody/my_data"]) == 0
    assert main(["train", "hf:somebody/my_data", "--out", "run"]) == 0
    assert main(["train", "hf:somebody/my_data", "--out", "run"]) == 0  # finished already
    assert main(["predict", "run", "hf:somebody/my_data@test", "--out", "p.csv"]) == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 21
    assert main(["report", "run", "--out", "page.html"]) == 0


def test_pictures_to_predict_on(tmp_path):
    pictures().save_to_disk(tmp_path / "saved")
    tiny = ["--steps", "4", "--batch", "4", "--ratio", "2", "--device", "cpu", "--label-column", "kind"]
    assert main(["train", str(tmp_path / "saved"), *tiny, "--out", str(tmp_path / "run")]) == 0
    pictures().remove_columns("kind").save_to_disk(tmp_path / "more")
    out = tmp_path / "p.csv"
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "more"), "--out", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 61


def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path, cache, capsys):
    in_cache(cache, "plain", "small", ("train",))
    in_cache(cache, "plain", "large", ("train",))
    pictures((8, 9)).save_to_disk(tmp_path / "sizes")
    table().save_to_disk(tmp_path / "damaged")
    (arrow,) = (tmp_path / "damaged").glob("*.arrow")
    arrow.write_bytes(arrow.read_bytes()[:200])
    damaged = pictures().select(range(9))
    damaged = damaged.cast_column("image", datasets.Image(decode=False))
    cells = [{"bytes": b"no" if i == 4 else cell["bytes"], "path": None} for i, cell in enumerate(damaged["image"])]
    damaged = datasets.Dataset.from_dict({"image": cells, "kind": damaged["kind"]}, features=damaged.features)
    damaged.cast_column("image", datasets.Image()).save_to_disk(tmp_path / "pixels")
    capsys.readouterr()
    for spec, flags, words in (
        ("hf:nobody/nothing", [], "there is no data set called nobody/nothing in"),
        ("hf:plain", [], "has the configurations 'large', 'small'"),
        ("hf:plain:huge", [], "the configuration 'huge' of plain is not in"),
        ("hf:plain:small@test", [], "has no split 'test'"),
        (f"hf:{tmp_path / 'sizes'}@test", [], "neither a file or folder"),
        (tmp_path / "sizes", ["--label-column", "kind"], "images of 2 sizes; add --image-size, or --features"),
        (tmp_path / "sizes", [], "has no column 'label'"),
        (tmp_path / "damaged", [], "cannot be read as a data set of Hugging Face"),
        (tmp_path / "pixels", ["--label-column", "kind"], "row 4 cannot be decoded as an image"),
    ):
        assert main(["diagnose", str(spec), *flags]) == 2
        said = capsys.readouterr().err
        assert words in said, said
        assert said.count("\n") == 1


def test_labels_are_not_written_beside_it(tmp_path, capsys):
    table().save_to_disk(tmp_path / "saved")
    assert main(["train", str(tmp_path / "saved"), "--out", str(tmp_path / "run")]) == 0
    assert main(["label", str(tmp_path / "run")]) == 2
    assert "beside which labels cannot be written" in capsys.readouterr().err


def test_without_the_library(tmp_path, capsys, monkeypatch):
    table().save_to_disk(tmp_path / "saved")
    monkeypatch.setitem(sys.modules, "datasets", None)  # as if it were not there
    assert main(["diagnose", str(tmp_path / "saved")]) == 2
    assert "pip install 'cadr[datasets]'" in capsys.readouterr().err


def test_the_layout_is_that_of_the_library(tmp_path, cache, monkeypatch):
    """What load_dataset itself leaves in its cache is found again; from local files, which need no network."""
    source = tmp_path / "my_set"
    source.mkdir()
    table().to_parquet(source / "train.parquet")
    datasets.load_dataset(str(source), cache_dir=str(cache))
    found = json.dumps([str(p.relative_to(cache)) for p in cache.rglob("*.arrow")])
    assert "train" in found
    name = next(p.name for p in cache.iterdir() if p.is_dir() and any(p.rglob("*.arrow")))
    assert len(open_data(f"hf:{name}").labels) == 60
