"""A column that counts the rows is no feature, whatever its name."""

import numpy as np
import pytest

from cadr.data.sources.schema_inference import number_rows
from cadr.errors import DataError
from tests.data.loose import open_data

NOISE = np.random.default_rng(0).normal(size=101)
SHUFFLED = np.random.default_rng(1).permutation(100)


def write(folder, numbers, kind):
    labels = ["x" if i % 3 else "y" for i in range(len(numbers))]
    if kind == "csv":
        rows = [f"{number},{noise},{label}" for number, noise, label in zip(numbers, NOISE, labels, strict=False)]
        (folder / "t.csv").write_text("id,a,label\n" + "\n".join(rows))
    else:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pyarrow.table({"id": numbers, "a": NOISE[: len(numbers)], "label": labels})
        parquet.write_table(table, folder / f"t.{kind}")
    return folder / f"t.{kind}"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("numbers", "span"),
    [
        (range(100), "0 to 99"),
        (range(1, 21), "1 to 20"),
        (range(99, -1, -1), "0 to 99"),
        (SHUFFLED.tolist(), "0 to 99"),
        ((SHUFFLED + 1).tolist(), "1 to 100"),
    ],
)
def test_row_numbers_are_refused(numbers, span, kind, tmp_path):
    data = write(tmp_path, list(numbers), kind)
    words = f"'id' only numbers the rows, from {span}; .* with --ignore-columns id, or divide it by {len(numbers)}"
    with pytest.raises(DataError, match=words):
        open_data(data)
    pool = open_data(data, ignore_columns=("id",))
    assert pool.feature_names == ("a",)
    assert pool.identifiers == tuple(str(number) for number in numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        list(range(19)),  # so few may be so by chance
        list(range(50, 100)),
        list(range(0, 200, 2)),
        [*range(50), 50.5, *range(51, 100)],
        [0] * 50 + [99] * 50,
        [*SHUFFLED[SHUFFLED != 50], 51],
        SHUFFLED - 1,
        SHUFFLED + 2,
        SHUFFLED / 100,  # what the sentence advises
        (SHUFFLED + 1) / 100,
    ],
)
def test_other_numbers_are_features(numbers, tmp_path):
    assert open_data(write(tmp_path, numbers, "csv")).feature_names == ("id", "a")


def test_a_column_with_gaps_is_a_feature(tmp_path):
    numbers = [*range(50), "", *range(51, 101)]  # the gap is filled with the median, which is 50
    assert open_data(write(tmp_path, numbers, "csv")).feature_names == ("id", "id missing", "a")


def test_row_numbers_behind_columns_of_words(tmp_path):
    rows = [
        f"{'uvw'[i % 3]},{noise},{number},x" for i, (number, noise) in enumerate(zip(SHUFFLED, NOISE, strict=False))
    ]
    (tmp_path / "t.csv").write_text("word,a,n,label\n" + "\n".join(rows))
    with pytest.raises(DataError, match="column 'n' only numbers the rows"):
        open_data(tmp_path / "t.csv")


def test_more_rows_than_32_bits_can_count():
    numbers = np.arange(1, 2**24 + 100, dtype=np.int64)[::-1]
    assert number_rows(numbers.astype(np.float32))
    assert not number_rows(np.concatenate([numbers[:-2], [1, 1]]).astype(np.float32))
