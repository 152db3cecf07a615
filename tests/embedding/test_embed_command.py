"""`cadr embed`: vectors in a file that opens like any other, under the names that the rows had."""

import csv

import numpy as np
import pytest
from PIL import Image

from cadr import data
from cadr.cli.main import main


@pytest.fixture
def photos(tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for n in range(12):
        pixels = random.integers(0, 120, (20 + n, 30 - n, 3))
        pixels[..., 2 * (n % 2)] += 130
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / f"{n:02}.png")
    rows = [f"{n:02}.png,{['red', 'blue'][n % 2]}" for n in range(8)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *rows]) + "\n", encoding="utf-8")
    return tmp_path / "photos"


def embed(*words):
    return main(["embed", *map(str, words)])


def test_the_file_is_what_features_would_give(photos, vit, tmp_path, capsys):
    out = tmp_path / "x.npz"
    assert embed(photos, "--labels", tmp_path / "labels.csv", "--features", vit, "--out", out) == 0
    assert "12 rows of 12 features, 8 of them labelled, of 2 classes" in capsys.readouterr().out
    direct = data.open_data(photos, labels=tmp_path / "labels.csv", features=str(vit))
    pool = data.open_data(out)
    np.testing.assert_array_equal(pool.examples, direct.examples)
    names = [[p.class_names[c] if c >= 0 else "" for c in p.labels] for p in (pool, direct)]
    assert names[0] == names[1]
    assert pool.identifiers == direct.identifiers


def test_without_labels_for_a_model_that_is_there(photos, vit, tmp_path):
    assert embed(photos, "--labels", tmp_path / "labels.csv", "--features", vit, "--out", tmp_path / "x.npz") == 0
    assert main(["train", str(tmp_path / "x.npz"), "--steps", "20", "--out", str(tmp_path / "run")]) == 0
    assert embed(photos, "--features", vit, "--out", tmp_path / "new.npz") == 0
    assert set(np.load(tmp_path / "new.npz")) == {"x", "ids"}
    words = [tmp_path / "run", tmp_path / "new.npz", "--out", tmp_path / "p.csv"]
    assert main(["predict", *map(str, words)]) == 0
    with (tmp_path / "p.csv").open() as file:
        assert [row["id"] for row in csv.DictReader(file)] == [f"{n:02}.png" for n in range(12)]


def test_a_test_part_and_texts(bert, vit, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (6, 20, 20, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x_train=pixels, y_train=[0, 1, -1, 0, 1, -1], x_test=pixels[:2], y_test=[0, 1])
    assert embed(tmp_path / "a.npz", "--features", vit, "--out", tmp_path / "b.npz") == 0
    pool = data.open_data(tmp_path / "b.npz")
    assert pool.test_examples is not None
    np.testing.assert_array_equal(pool.test_examples, pool.examples[:2])
    (tmp_path / "texts").mkdir()
    for n in range(3):
        (tmp_path / "texts" / f"{n}.txt").write_text("the owl hunts by night", encoding="utf-8")
    assert embed(tmp_path / "texts", "--features", bert, "--out", tmp_path / "c.npz") == 0
    assert np.load(tmp_path / "c.npz")["x"].shape == (3, 12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "x.npz"], "embed needs --features NAME"),
        (["--features", "VIT", "--out", "x.csv"], "x.csv: vectors are written to a file that ends in .npz"),
        (["--features", "no/such-model", "--out", "x.npz"], "no model of that name is in"),
    ],
)
def test_what_it_cannot_do_costs_a_sentence(words, message, photos, vit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [str(vit) if word == "VIT" else word for word in words]
    assert embed("photos", "--labels", "labels.csv", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x.npz").exists()


def test_it_does_not_write_over_its_data(vit, tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 4, 4, 3), np.uint8), y=[0, 1])
    before = (tmp_path / "a.npz").read_bytes()
    assert embed(tmp_path / "a.npz", "--features", vit, "--out", tmp_path / "a.npz") == 2
    assert "is what to embed" in capsys.readouterr().err
    assert (tmp_path / "a.npz").read_bytes() == before


def test_ids_are_a_string_for_each_row(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3), np.float32), y=[0, 1], ids=["a"])
    assert main(["diagnose", str(tmp_path / "a.npz")]) == 2
    assert "ids should be 2 strings, got <U1 of shape (1,)" in capsys.readouterr().err
