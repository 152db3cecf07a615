"""Words and gaps in a table: the features that scikit-learn's encoder and imputer make, from every kind of file."""

import csv
from decimal import Decimal

import numpy as np
import pytest

from cadr.data.sources import table
from cadr.data.sources.base import Wanted
from cadr.data.sources.columns import Column
from cadr.data.sources.registry import open_blocks
from cadr.errors import DataError
from cadr.training.prepare import fingerprint
from tests.data.loose import open_data

N = 300
NAMES = ["size", "colour", "height", "shop", "damaged"]


def rows(seed=0):
    """A number with gaps, words, a number without, words with gaps, and truth values with gaps."""
    random = np.random.default_rng(seed)

    def gappy(values):
        return [None if gap else value for gap, value in zip(random.random(N) < 0.15, values, strict=True)]

    return [
        gappy(random.normal(50, 9, N).astype(np.float32).tolist()),
        random.choice(["red", "blue, light", "grün"], N).tolist(),
        random.integers(0, 9, N).tolist(),
        gappy(random.choice(["NA", "north", "38"], N, p=[0.3, 0.6, 0.1]).tolist()),
        gappy((random.random(N) < 0.5).tolist()),
    ]


def labels():
    return ["xyz"[i % 3] if i % 4 else None for i in range(N)]


def write(path, columns, names=NAMES, gap=""):
    sign = "\t" if path.suffix == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter=sign)
        lines.writerow([*names, "label"])
        for *cells, label in zip(*columns, labels(), strict=True):
            lines.writerow([gap if cell is None else cell for cell in cells] + [label or ""])
    return path


def write_parquet(path, columns, categorical=False):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    arrays = [pyarrow.array(column) for column in columns]
    if categorical:
        arrays = [array.dictionary_encode() if array.type == pyarrow.string() else array for array in arrays]
    parquet.write_table(pyarrow.table([*arrays, labels()], [*NAMES, "label"]), path)
    return path


def expected(columns):
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    def numbers(column):
        x = np.array([[np.nan if value is None else float(value)] for value in column])
        if not np.isnan(x).any():
            return x
        return np.hstack([SimpleImputer(strategy="median").fit_transform(x), MissingIndicator().fit_transform(x)])

    def words(column):
        known = sorted({value for value in column if value is not None})
        cells = np.array([["" if value is None else value] for value in column], dtype=object)
        return OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False).fit_transform(cells)

    size, colour, height, shop, damaged = columns
    parts = [numbers(size), words(colour), numbers(height), words(shop), numbers(damaged)]
    return np.hstack(parts).astype(np.float32)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "categorical.parquet"])
def test_features_are_those_of_scikit_learn(name, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 64)  # what is first seen in a later block counts too
    columns, path = rows(), tmp_path / name
    if path.suffix == ".parquet":
        write_parquet(path, columns, categorical=name.startswith("categorical"))
    else:
        write(path, columns)
    pool = open_data(path)
    np.testing.assert_array_equal(pool.examples, expected(columns))
    assert pool.feature_names == (
        *("size", "size missing", "colour = blue, light", "colour = grün", "colour = red", "height"),
        *("shop = 38", "shop = NA", "shop = north", "damaged", "damaged missing"),
    )
    assert [column.name for column in pool.columns] == NAMES
    assert pool.counts.sum() == sum(label is not None for label in labels())


@pytest.mark.parametrize("gap", ["NA", "n/a", "NaN", "nan", "NULL", "None", "?", " ", "#N/A"])
def test_a_missing_number_is_spelt_in_many_ways(gap, tmp_path):
    size, height = rows()[0], rows()[2]
    pools = [open_data(write(tmp_path / f"t{i}.csv", [size, height], ["a", "b"], g)) for i, g in enumerate(["", gap])]
    np.testing.assert_array_equal(pools[0].examples, pools[1].examples)
    assert pools[0].columns == pools[1].columns
    assert pools[1].feature_names == ("a", "a missing", "b")


def test_a_table_of_numbers_is_what_it_was(tmp_path):
    height = rows()[2]
    pool = open_data(write(tmp_path / "t.csv", [height, height[::-1]], ["a", "b"]))
    assert (pool.columns, pool.feature_names) == (None, ("a", "b"))
    np.testing.assert_array_equal(pool.examples, np.array([height, height[::-1]], dtype=np.float32).T)
    assert "rows of 2 features, 3 classes" in pool.describe()


def test_space_and_accents_make_no_other_word(tmp_path):
    words = ["grün", " grün", "gru\u0308n", "rot"] * (N // 4)
    assert open_data(write(tmp_path / "t.csv", [words], ["a"])).columns == (Column("a", ("grün", "rot")),)


def test_a_third_word_beside_true_and_false_is_a_word(tmp_path):
    cells = ["True", "False", "unknown", "", "TRUE", "false"] * (N // 6)
    assert open_data(write(tmp_path / "t.csv", [cells], ["a"])).columns == (Column("a", ("false", "true", "unknown")),)


def test_what_python_alone_takes_for_a_number_is_a_word(tmp_path):
    months = ["2023_01", "2023_02", ""] * (N // 3)
    assert open_data(write(tmp_path / "t.csv", [months], ["a"])).columns == (Column("a", ("2023_01", "2023_02")),)


@pytest.mark.parametrize("cells", [["1,5", "-2,0"], ["1,250", "1,250,000.5"], ["3", "4,5"], ["1,5", "NA"]])
def test_few_numbers_with_commas_are_no_words(cells, tmp_path):
    path = write(tmp_path / "t.csv", [cells * (N // 2)], ["a"])
    with pytest.raises(DataError, match=r"column 'a': expected a number, got '.*,.*' \(decimals are written with a"):
        open_data(path)


def test_commas_between_words_are_no_decimals(tmp_path):
    cells = [",", "a, b", "1, 2 or 3"] * (N // 3)
    assert open_data(write(tmp_path / "t.csv", [cells], ["a"])).columns == (Column("a", tuple(sorted(set(cells)))),)


def test_decimals_and_views_of_text_in_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    price = pyarrow.array([None if i % 5 == 0 else Decimal(i) / 4 for i in range(N)], pyarrow.decimal128(12, 2))
    colour = pyarrow.array(["red", "blue", None] * (N // 3), pyarrow.string_view())
    parquet.write_table(pyarrow.table([price, colour, labels()], ["price", "colour", "label"]), tmp_path / "t.parquet")
    pool = open_data(tmp_path / "t.parquet")
    assert [column.words for column in pool.columns] == [None, ("blue", "red")]
    assert pool.examples[:4].tolist() == [
        [pool.columns[0].fill, 1, 0, 1],
        [0.25, 0, 1, 0],
        [0.5, 0, 0, 0],
        [0.75, 0, 0, 1],
    ]


def test_fifty_words_are_features_and_one_more_are_not(tmp_path):
    fifty, more = ([f"word {i % n}" for i in range(N)] for n in (50, 51))
    assert len(open_data(write(tmp_path / "t.csv", [fifty], ["a"])).feature_names) == 50
    with pytest.raises(DataError, match="column 'a' holds 51 different categories in 300 rows, too many to learn from"):
        open_data(write(tmp_path / "t.csv", [more], ["a"]))


def test_many_words_are_not_counted_to_the_end(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"name {i},{'xy'[i % 2]}\n" for i in range(1500)))
    with pytest.raises(DataError, match="column 'a' holds more than 1,000 different categories in 1,500 rows"):
        open_data(tmp_path / "t.csv")


def test_few_words_in_few_rows_are_features(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\nred,x\nblue,y\n")
    assert open_data(tmp_path / "t.csv").examples.tolist() == [[0, 1], [1, 0]]


def test_other_words_or_another_median_are_other_data(tmp_path):
    size, colour = rows()[:2]
    other_words = [size, ["pink" if word == "red" else word for word in colour]]
    other_median = [[value and value + 1 for value in size], colour]
    tables = [[size, colour], [size, colour], other_words, other_median]
    found = [fingerprint(open_data(write(tmp_path / "t.csv", columns, ["a", "b"]))) for columns in tables]
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_what_was_made_of_the_columns_is_said(tmp_path):
    pool = open_data(write(tmp_path / "t.csv", rows()))
    size, damaged = (np.median([value for value in rows()[i] if value is not None]) for i in (0, 4))
    assert pool.describe().splitlines()[:3] == [
        "t: 300 rows of 11 features from 5 columns, 3 classes; 225 labelled (75 %); 75 unlabelled",
        "Categorical columns, one-hot encoded: colour ('blue, light', grün, red), shop (38, NA, north).",
        f"Missing values imputed by the median and flagged by a feature: size ({size:g}), damaged ({damaged:g}).",
    ]


@pytest.mark.parametrize("words", [("false", "true", "unknown"), ("FALSE", "TRUE", "unknown")])
def test_true_and_false_are_the_same_words_however_they_are_kept(words, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "t.csv").write_text("a,b\nTrue,1\n,1\nFALSE,1\n")
    parquet.write_table(pyarrow.table({"a": [True, None, False], "b": [1, 1, 1]}), tmp_path / "t.parquet")
    wanted = Wanted((4,), ("x", "y"), (Column("a", words), Column("b")))
    for name in ("t.csv", "t.parquet"):
        (block,) = open_blocks(str(tmp_path / name), wanted).blocks
        assert block.examples.tolist() == [[0, 1, 0, 1], [0, 0, 0, 1], [1, 0, 0, 1]]
        assert block.unseen == {}
