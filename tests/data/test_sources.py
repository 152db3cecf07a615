import numpy as np
import pytest
from PIL import Image

from cadr.data.pool import is_mapped
from cadr.data.sources import images
from cadr.errors import DataError
from tests.data.loose import from_arrays, open_data
from tests.data.writers import tiny, write_image

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8)
COLOUR = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)


def test_arrays_of_every_kind():
    labels = np.array([0, 1, -1], dtype=np.int8)
    grey = from_arrays(np.stack([GREY] * 3), labels)
    assert grey.examples.shape == (3, 8, 8, 3)
    assert (grey.examples == GREY[None, ..., None]).all()
    rgba = np.concatenate([np.stack([COLOUR] * 3), np.full((3, 8, 8, 1), 255, np.uint8)], axis=-1)
    assert np.array_equal(from_arrays(rgba, labels).examples[1], COLOUR)
    for kind in (np.float64, np.float16, np.int32, bool):
        pool = from_arrays(np.ones((3, 2), kind), labels)
        assert pool.examples.dtype == np.float32
        assert (pool.examples == 1).all()


def test_text_labels_are_put_in_order():
    pool = from_arrays(np.zeros((5, 2), np.float32), np.array(["dog", "", "cat", "dog", "cat"]))
    assert pool.class_names == ("cat", "dog")
    assert pool.labels.tolist() == [1, -1, 0, 1, 0]
    numbered = from_arrays(np.zeros((4, 2), np.float32), np.array(["10", "9", "-1", "2"]))
    assert numbered.class_names == ("2", "9", "10")
    assert numbered.labels.tolist() == [2, 1, -1, 0]
    for missing in ("-1", "-1.0"):
        words = from_arrays(np.zeros((4, 2), np.float32), np.array(["dog", missing, "cat", missing]))
        assert words.class_names == ("cat", "dog")
        assert words.labels.tolist() == [1, -1, 0, -1]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    x, y = tiny(20, side=6)
    save(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5], class_names=list("abcdefghij"))
    pool = open_data(str(tmp_path / "mine.npz"))
    assert (pool.name, pool.class_names[3]) == ("mine", "d")
    assert np.array_equal(pool.examples, x)
    assert np.array_equal(pool.labels, y)
    assert np.array_equal(pool.test_examples, x[:5])
    assert is_mapped(pool.examples) == (save is np.savez)


def test_npz_maps_every_layout(tmp_path):
    x = np.asfortranarray(np.arange(30, dtype=np.float32).reshape(10, 3))
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(10) % 2)
    assert np.array_equal(open_data(tmp_path / "a.npz").examples, x)


def test_an_npy_of_one_number_is_no_data(tmp_path):
    np.save(tmp_path / "one.npy", np.float32(1))
    (tmp_path / "labels.csv").write_text("row,label\n0,a\n")
    with pytest.raises(DataError, match="got float32 of shape"):
        open_data(tmp_path / "one.npy", labels=tmp_path / "labels.csv")


def test_npy_with_labels_beside(tmp_path):
    x = np.arange(30, dtype=np.float32).reshape(10, 3)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.arange(10) % 2)
    (tmp_path / "all.csv").write_text("label\n" + "\n".join(["a", "b"] * 5))
    (tmp_path / "some.csv").write_text("row,label\n3,b\n0,a\n7,\n")
    mapped = open_data(tmp_path / "x.npy", labels=tmp_path / "y.npy")
    assert is_mapped(mapped.examples)
    assert np.array_equal(mapped.examples, x)
    assert open_data(tmp_path / "x.npy", labels=tmp_path / "all.csv").counts.tolist() == [5, 5]
    assert open_data(tmp_path / "x.npy", labels=tmp_path / "some.csv").labels.tolist() == [0, -1, -1, 1] + [-1] * 6


def test_blank_lines_in_a_column_of_labels_are_missing_labels(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 2), np.float32))
    for end in ("\n", "\n\n\n"):
        (tmp_path / "l.csv").write_text("label\n\nb\n\n a\n" + end)
        assert open_data(tmp_path / "x.npy", labels=tmp_path / "l.csv").labels.tolist() == [-1, 1, -1, 0, -1]
    (tmp_path / "l.csv").write_text("label,note\na,1\n\nb,2\n\n,3\n,4\n,5\n")  # of several cells it is no row
    assert open_data(tmp_path / "x.npy", labels=tmp_path / "l.csv").labels.tolist() == [0, 1, -1, -1, -1]


@pytest.mark.parametrize("without", ["unlabelled", "unlabeled"])
def test_class_folders(without, tmp_path):
    write_image(tmp_path / "pets" / "dog" / "b.png", COLOUR)
    write_image(tmp_path / "pets" / "dog" / "a.png", COLOUR[::-1])
    write_image(tmp_path / "pets" / "cat" / "z.png", GREY)
    write_image(tmp_path / "pets" / without / "q.png", COLOUR)
    write_image(tmp_path / "pets" / "test" / "dog" / "t.png", COLOUR)
    (tmp_path / "pets" / ".DS_Store").write_bytes(b"hidden")
    pool = open_data(str(tmp_path / "pets"))
    assert pool.name == "pets"
    assert pool.class_names == ("cat", "dog")
    assert pool.identifiers == ("cat/z.png", "dog/a.png", "dog/b.png", f"{without}/q.png")
    assert pool.labels.tolist() == [0, 1, 1, -1]
    assert np.array_equal(pool.examples[2], COLOUR)
    assert np.array_equal(pool.examples[0], np.repeat(GREY[..., None], 3, axis=-1))
    assert pool.test_labels.tolist() == [1]


def test_a_folder_without_labels_may_begin_with_a_capital(tmp_path):
    for name in ("cat", "dog", "Unlabelled"):
        write_image(tmp_path / name / "a.png", COLOUR)
    pool = open_data(tmp_path)
    assert pool.class_names == ("cat", "dog")
    assert sorted(pool.labels.tolist()) == [-1, 0, 1]


@pytest.mark.parametrize(("name", "sign"), [("mine.csv", ";"), ("mine.csv", "\t"), ("MINE.TSV", "\t")])
def test_spreadsheets_that_separate_with_another_sign(tmp_path, name, sign):
    rows = [["a", "b", "label"], ["1", "2.5", "yes, sir"], ["3", "4", "no"], ["5", "6", ""]]
    (tmp_path / name).write_text("".join(sign.join(row) + "\n" for row in rows), encoding="utf-8-sig")
    pool = open_data(tmp_path / name)
    assert pool.feature_names == ("a", "b")
    assert pool.class_names == ("no", "yes, sir")
    assert pool.examples.tolist() == [[1, 2.5], [3, 4], [5, 6]]


def test_a_class_may_be_called_test(tmp_path):
    write_image(tmp_path / "test" / "a.png", COLOUR)
    write_image(tmp_path / "work" / "a.png", COLOUR)
    assert open_data(tmp_path).class_names == ("test", "work")


@pytest.mark.parametrize("given", [True, False])
def test_plain_images_with_a_csv(tmp_path, given):
    for name in ("b.png", "a.png", "deep/c.png"):
        write_image(tmp_path / "photos" / name, COLOUR)
    csv = tmp_path / ("mine.csv" if given else "photos/labels.csv")
    csv.write_bytes("\ufefffile,label\r\na.png,größe\r\n\r\ndeep/c.png,x\r\nb.png,\r\n".encode())
    pool = open_data(tmp_path / "photos", labels=csv if given else None)
    assert pool.identifiers == ("a.png", "b.png", "deep/c.png")
    assert pool.class_names == ("größe", "x")
    assert pool.labels.tolist() == [0, -1, 1]


def test_images_not_in_the_csv_are_unlabelled(tmp_path):
    for name in "abc":
        write_image(tmp_path / f"{name}.png", COLOUR)
    (tmp_path / "labels.csv").write_text("file,kind,note\na.png,0,x\nc.png,1,y\n")
    assert open_data(tmp_path, label_column="kind").labels.tolist() == [0, -1, 1]


def test_the_columns_may_begin_with_a_capital(tmp_path):
    for name in "abc":
        write_image(tmp_path / f"{name}.png", COLOUR)
    (tmp_path / "labels.csv").write_text("File,Label\na.png,0\nc.png,1\n")
    assert open_data(tmp_path).labels.tolist() == [0, -1, 1]
    (tmp_path / "labels.csv").write_text("FILE,File,label\na.png,b.png,0\nc.png,b.png,1\n")
    with pytest.raises(DataError, match="has no column 'file'; its columns are 'FILE', 'File', 'label'"):
        open_data(tmp_path)


def test_what_systems_hide_among_images_is_none(tmp_path):
    for name in ("a.png", "b.png", "c.png", ".named.png"):
        write_image(tmp_path / name, COLOUR)
    for name in ("._a.png", ".thumbnails/b.png", "__MACOSX/._c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"Mac OS X")
    (tmp_path / "labels.csv").write_text("file,label\na.png,0\nc.png,1\n.named.png,1\n")
    pool = open_data(tmp_path)
    assert pool.identifiers == (".named.png", "a.png", "b.png", "c.png")
    assert pool.labels.tolist() == [1, 0, -1, 1]


def test_resizing_and_colour_models(tmp_path):
    wide = np.tile(COLOUR, (1, 3, 1))
    write_image(tmp_path / "a" / "wide.png", wide)
    write_image(tmp_path / "a" / "grey.png", GREY)
    write_image(tmp_path / "b" / "alpha.png", np.concatenate([COLOUR, np.full((8, 8, 1), 255, np.uint8)], axis=-1))
    Image.fromarray(COLOUR).convert("P").save(tmp_path / "b" / "palette.gif")
    Image.fromarray((GREY.astype(np.uint16) << 8) + 77).save(tmp_path / "b" / "sixteen.png")
    pool = open_data(tmp_path, image_size=5)
    assert pool.examples.shape == (5, 5, 5, 3)
    expected = Image.fromarray(wide).resize((5, 5), Image.Resampling.BILINEAR)
    assert np.array_equal(pool.examples[1], np.asarray(expected))
    at_home = open_data(tmp_path, image_size=8)
    assert np.array_equal(at_home.examples[2], COLOUR)
    assert np.array_equal(at_home.examples[4][..., 0], GREY)  # 16 bits are scaled, not clipped


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path, orientation):
    upright = np.zeros((16, 24, 3), np.uint8)
    upright[:8, :8] = 255  # a bright corner, and wider than high
    undo = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, 1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, -1),
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = write_image(tmp_path / "x.png", np.ascontiguousarray(undo[orientation](upright)), exif=exif)
    assert np.array_equal(images.decode(path), upright)


def test_decoding_in_parallel_keeps_the_order(tmp_path):
    files = [write_image(tmp_path / f"{i:03}.png", np.full((4, 4), i, np.uint8)) for i in range(200)]
    assert images.decode_all(files)[:, 0, 0, 0].tolist() == list(range(200))


def test_benchmarks_can_be_resized():
    pool = open_data("digits", image_size=16)
    assert pool.examples.shape == (1267, 16, 16, 3)
    assert pool.test_examples.shape == (530, 16, 16, 3)


def test_csv_table(tmp_path):
    (tmp_path / "t.csv").write_text('a,"b, c",label\n1,2.5,x\n-3e2, 4 ,\n5,6,y\n')
    pool = open_data(tmp_path / "t.csv")
    assert pool.feature_names == ("a", "b, c")
    assert pool.examples.tolist() == [[1, 2.5], [-300, 4], [5, 6]]
    assert pool.labels.tolist() == [0, -1, 1]
    assert pool.name == "t"


def test_true_and_false_are_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\nTrue,FALSE,x\nfalse, true ,y\n0.5,1,\n")
    assert open_data(tmp_path / "t.csv").examples.tolist() == [[1, 0], [0, 1], [0.5, 1]]
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [True, False], "label": ["x", "y"]}), tmp_path / "t.parquet")
    assert open_data(tmp_path / "t.parquet").examples.tolist() == [[1], [0]]


def test_the_first_ignored_column_names_the_rows(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,when,label\np-7,1,May,x\n,2,June,y\n p 9 ,3,July,\n")
    pool = open_data(tmp_path / "t.csv", ignore_columns=("id", "when"))
    assert (pool.identifiers, pool.feature_names) == (("p-7", "", "p 9"), ("a",))
    assert open_data(tmp_path / "t.csv", ignore_columns=("when", "id")).identifiers == ("May", "June", "July")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [1, 2], "label": ["x", "y"], "id": [70, None]}), tmp_path / "t.parquet")
    assert open_data(tmp_path / "t.parquet", ignore_columns=("id",)).identifiers == ("70", "")


def test_csv_table_longer_than_a_block(tmp_path):
    x = np.random.default_rng(0).normal(size=(10_000, 3)).astype(np.float32)
    rows = "\n".join(f"{i % 3},{a!r},{b!r},{c!r}" for i, (a, b, c) in enumerate(x.tolist()))
    (tmp_path / "long.csv").write_text("class,a,b,c\n" + rows)
    pool = open_data(tmp_path / "long.csv", label_column="class")
    assert np.array_equal(pool.examples, x)
    assert pool.class_names == ("0", "1", "2")


@pytest.mark.parametrize("labels", [["x", None, "y"], [3, None, 7], [3.0, float("nan"), 7.0]])
def test_parquet_table(tmp_path, labels):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": [1, 2, 3], "label": labels, "b": [0.5, 1.5, 2.5]})
    parquet.write_table(table, tmp_path / "t.parquet")
    pool = open_data(tmp_path / "t.parquet")
    assert pool.examples.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5]]
    assert pool.labels.tolist() == [0, -1, 1]
    assert pool.class_names == (("x", "y") if labels[0] == "x" else ("3", "7"))


def test_parquet_without_the_extra(tmp_path, monkeypatch):
    import sys

    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install 'cadr\[parquet\]'"):
        open_data(tmp_path / "t.parquet")


def test_a_setting_that_means_nothing_here_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    (tmp_path / "y.csv").write_text("label\nx\ny\n")
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(DataError, match=r"--image-size is for images, and .*t\.csv holds features; leave it out"):
        open_data(tmp_path / "t.csv", image_size=16)
    with pytest.raises(DataError, match=r"--ignore-columns is for tables, and .*x\.npy has no columns with names"):
        open_data(tmp_path / "x.npy", labels=tmp_path / "y.csv", ignore_columns=("id",))
