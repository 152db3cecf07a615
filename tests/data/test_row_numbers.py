"""A column that counts the rows is no feature, whatever its name."""

import numpy as np
import pytest

from cadr.errors import DataError
from tests.data.loose import open_data

NOISE = np.random.default_rng(0).normal(size=100)


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
@pytest.mark.parametrize(("numbers", "span"), [(range(100), "0 to 99"), (range(1, 21), "1 to 20")])
def test_row_numbers_are_refused(numbers, span, kind, tmp_path):
    data = write(tmp_path, list(numbers), kind)
    words = f"column 'id' only counts the rows, from {span}; .* leave the column out with --ignore-columns id, or put"
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
        list(range(100))[::-1],
        [*range(50), 50.5, *range(51, 100)],
        [0] * 50 + [99] * 50,
    ],
)
def test_other_numbers_are_features(numbers, tmp_path):
    assert open_data(write(tmp_path, numbers, "csv")).feature_names == ("id", "a")
