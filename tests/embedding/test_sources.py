"""Data that are learned from as vectors: pictures in folders and arrays, texts in files and in columns of a table."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cadr import data
from cadr.data.raw import PictureFiles, Pictures, Texts
from cadr.data.sources.base import Wanted
from cadr.data.sources.registry import open_blocks
from cadr.embedding.embed import embed
from cadr.embedding.registry import Pretrained
from cadr.errors import DataError

open_data: Any = data.open_data  # what a pool may hold, these pools hold

WORDS = ("the owl hunts by night", "the wren sings by day", "the owl sings and the wren hunts")


@pytest.fixture
def photos(tmp_path):
    """Of many sizes, which only a pretrained model brings to one."""
    random = np.random.default_rng(0)
    for kind in ("owl", "wren", "unlabelled"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for n in range(5):
            pixels = random.integers(0, 256, (20 + n, 30 - n, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / kind / f"{n}.png")
    return tmp_path / "photos"


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts").mkdir()
    for n in range(9):
        (tmp_path / "texts" / f"{n}.txt").write_text(f"{WORDS[n % 3]} {n}", encoding="utf-8")
    rows = ["file,label", "0.txt,owl", "1.txt,wren", "3.txt,owl"]
    (tmp_path / "texts.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "texts"


@pytest.fixture
def table(tmp_path):
    rows = [
        "text,size,label",
        *(f'"{WORDS[n % 3]}, {n}",{n / 2},{["owl", "wren"][n % 2]}' for n in range(12)),
        "a b c d,7,",
    ]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path / "table.csv"


def test_photographs_of_any_size(photos, vit):
    pool = open_data(photos, features=str(vit))
    assert (pool.kind, pool.examples.shape, pool.counts.tolist()) == ("features", (15, 12), [5, 5])
    files = PictureFiles(tuple(photos / name for name in pool.identifiers))
    np.testing.assert_array_equal(pool.examples, embed(Pretrained.find(str(vit)), files))
    assert pool.has_pictures
    np.testing.assert_array_equal(pool.picture(7, 96), files.read(7))
    with pytest.raises(DataError, match=r"choose one size for all with --image-size, .* with --features"):
        open_data(photos)


def test_photographs_to_test_on(photos, vit):
    (photos / "test" / "owl").mkdir(parents=True)
    (photos / "owl" / "0.png").rename(photos / "test" / "owl" / "0.png")
    pool = open_data(photos, features=str(vit))
    assert (len(pool.examples), pool.test_labels.tolist(), len(pool.embedded.raw)) == (14, [0], 14)
    alone = PictureFiles((photos / "test" / "owl" / "0.png",))
    np.testing.assert_array_equal(pool.test_examples, embed(Pretrained.find(str(vit)), alone))


def test_arrays_of_pictures(tmp_path, vit):
    x = np.random.default_rng(0).integers(0, 256, (8, 12, 12, 3), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", x_train=x[:6], y_train=[0, 1, -1, -1, 0, 1], x_test=x[6:], y_test=[0, 1])
    pool = open_data(tmp_path / "x.npz", features=str(vit))
    expected = embed(Pretrained.find(str(vit)), Pictures(x))
    np.testing.assert_allclose(np.concatenate([pool.examples, pool.test_examples]), expected, atol=1e-6)
    np.testing.assert_array_equal(pool.picture(3, 96), x[3])


def test_texts_in_files(texts, bert):
    pool = open_data(texts, labels=texts.parent / "texts.csv", features=str(bert))
    assert (pool.examples.shape, pool.counts.tolist(), pool.identifiers[4]) == ((9, 12), [2, 1], "4.txt")
    expected = embed(Pretrained.find(str(bert)), Texts(tuple(f"{WORDS[n % 3]} {n}" for n in range(9))))
    np.testing.assert_array_equal(pool.examples, expected)
    assert (pool.text(4), pool.has_pictures, pool.picture(4, 96)) == ("the wren sings by day 4", False, None)


def test_texts_in_a_folder_per_class(texts, bert):
    for n in range(9):
        folder = texts / ("owl", "wren", "unlabelled")[n % 3]
        folder.mkdir(exist_ok=True)
        (texts / f"{n}.txt").rename(folder / f"{n}.txt")
    pool = open_data(texts, features=str(bert))
    assert (pool.class_names, pool.counts.tolist(), len(pool.labels)) == (("owl", "wren"), [3, 3], 9)


def test_a_column_of_texts_beside_others(table, bert):
    pool = open_data(table, features=str(bert))
    assert pool.columns[0].texts == 12
    assert pool.feature_names[11:] == ("text [11]", "size")
    expected = [*(f"{WORDS[n % 3]}, {n}" for n in range(12)), "a b c d"]
    np.testing.assert_array_equal(pool.examples[:, :12], embed(Pretrained.find(str(bert)), Texts(tuple(expected))))
    np.testing.assert_array_equal(pool.examples[:, 12], [*np.arange(12) / 2, 7])
    assert pool.text(12) == "a b c d"


def test_the_same_from_parquet_and_from_pandas(table, bert):
    pytest.importorskip("pyarrow", reason="cadr[parquet] is not installed")
    frame = pd.read_csv(table)
    frame.to_parquet(table.with_suffix(".parquet"))
    pool, other = (open_data(path, features=str(bert)) for path in (table, table.with_suffix(".parquet")))
    np.testing.assert_array_equal(pool.examples, other.examples)
    assert pool.contents == other.contents
    from cadr.data.sources.arrays import columns_of, frame_features, open_frame
    from cadr.data.sources.base import Options

    pretrained = Pretrained.find(str(bert))
    np.testing.assert_array_equal(open_frame(frame, Options(features=pretrained)).examples, pool.examples)
    columns: Any = columns_of("X", frame[["text", "size"]], pretrained)
    assert columns == pool.columns
    np.testing.assert_array_equal(frame_features("X", frame, columns, pretrained), pool.examples)


def test_what_is_a_text_and_what_a_word(table, bert):
    with pytest.raises(
        DataError,
        match=r"column 'text' holds texts, which need a pretrained model: add --features NAME .*, "
        r"or leave it out with --ignore-columns text$",
    ):
        open_data(table)
    names = table.with_name("names.csv")
    names.write_text("name,label\n" + "".join(f"row{n},{n % 2}\n" for n in range(30)), encoding="utf-8")
    with pytest.raises(DataError, match="column 'name' holds 30 different categories in 30 rows, too many to learn"):
        open_data(names, features=str(bert))
    assert open_data(names, features=str(bert), text_column="name").columns[0].texts == 12
    few = table.with_name("few.csv")
    few.write_text("word,label\n" + "".join(f"owl {'ab'[n % 2]},{n % 2}\n" for n in range(30)), encoding="utf-8")
    with pytest.raises(DataError, match=r"--features is for pictures and texts, and .* holds numbers alone; leave it"):
        open_data(few, features=str(bert))  # the words of the column are features already
    assert open_data(few, features=str(bert), text_column="word").columns[0].texts == 12
    with pytest.raises(DataError, match=r"^--text-column text is learned from through a pretrained model: add --feat"):
        open_data(table, text_column="text")
    with pytest.raises(DataError, match=r"has no column 'nothing'; its columns are .*; --text-column names the one"):
        open_data(table, features=str(bert), text_column="nothing")


def test_texts_need_a_model_and_must_be_texts(texts, bert, vit):
    labels = texts.parent / "texts.csv"
    with pytest.raises(DataError, match="holds texts, which need a pretrained model: add --feat"):
        open_data(texts, labels=labels)
    with pytest.raises(DataError, match="--text-column is for tables"):
        open_data(texts, labels=labels, features=str(bert), text_column="text")
    with pytest.raises(DataError, match="holds no tokenizer"):
        open_data(texts, labels=labels, features=str(vit))
    for n in (2, 5):
        (texts / f"{n}.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"2.txt, .*5.txt cannot be read: it is not UTF-8 \(byte 0xe9\); save as UTF-8"):
        open_data(texts, labels=labels, features=str(bert))


def test_a_folder_with_images_is_one_of_images(photos):
    (photos / "README.txt").write_text("photographs of owls")
    with pytest.raises(DataError, match="choose one size for all"):
        open_data(photos)


def test_contents_are_those_of_the_data_not_of_the_machine(photos, vit, monkeypatch):
    """Vectors differ in their last digits from machine to machine, and the data are the same."""
    before = open_data(photos, features=str(vit))
    rounded = embed

    def elsewhere(pretrained, items, keys=None):
        return rounded(pretrained, items, keys) * np.float32(1 + 1e-6)

    monkeypatch.setattr("cadr.embedding.embed.embed", elsewhere)
    after = open_data(photos, features=str(vit))
    assert (before.examples != after.examples).any()
    assert before.contents == after.contents
    Image.new("RGB", (9, 9)).save(photos / "owl" / "0.png")
    assert open_data(photos, features=str(vit)).contents != before.contents


def wanted(folder, raw, columns=None, d=12):
    return Wanted((d,), ("owl", "wren"), columns, features=Pretrained.find(str(folder)), raw=raw)


def blocks(data, wants, labels=None):
    opened = open_blocks(str(data), wants, labels)
    parts = list(opened.blocks)
    return np.concatenate([block.examples for block in parts]), [cell for b in parts for cell in b.kept[0]]


def test_to_predict_on_pictures(photos, vit, tmp_path):
    pool = open_data(photos, features=str(vit))
    x, names = blocks(photos, wanted(vit, "pictures"))
    assert set(names) == set(pool.identifiers)
    np.testing.assert_allclose(x[[names.index(n) for n in pool.identifiers]], pool.examples, atol=1e-6)
    x, names = blocks(photos / "owl" / "3.png", wanted(vit, "pictures"))
    np.testing.assert_allclose(x[0], pool.examples[pool.identifiers.index("owl/3.png")], atol=1e-6)
    np.save(tmp_path / "x.npy", pool.picture(0, 96)[None])
    np.testing.assert_allclose(blocks(tmp_path / "x.npy", wanted(vit, "pictures"))[0], pool.examples[:1], atol=1e-6)
    for name in ("owl/1.png", "wren/2.png"):
        (photos / name).write_bytes(b"broken")
    with pytest.raises(DataError, match=r"2 of 15 images cannot be read: .*1.png, .*2.png"):
        blocks(photos, wanted(vit, "pictures"))


def test_to_predict_on_texts(texts, table, bert):
    pool = open_data(texts, labels=texts.parent / "texts.csv", features=str(bert))
    x, names = blocks(texts, wanted(bert, "texts"))
    assert names == list(pool.identifiers)
    np.testing.assert_allclose(x, pool.examples, atol=1e-6)
    np.testing.assert_allclose(blocks(texts / "4.txt", wanted(bert, "texts"))[0], pool.examples[4:5], atol=1e-6)
    pool = open_data(table, features=str(bert))
    x, rows = blocks(table, wanted(bert, None, pool.columns, 13))
    np.testing.assert_allclose(x, pool.examples, atol=1e-6)
    assert rows == list(range(13))


def test_to_predict_on_what_it_was_not_trained_on(photos, texts, vit, bert):
    with pytest.raises(
        DataError, match="is a folder of texts, but the model was trained on pictures, by their vectors"
    ):
        blocks(texts, wanted(vit, "pictures"))
    with pytest.raises(DataError, match="is a folder, which is read as images, but the model was trained on texts, by"):
        blocks(photos, wanted(bert, "texts"))
