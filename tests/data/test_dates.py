"""Dates in a table are days, as pandas-free NumPy counts them, from every kind of file."""

import csv
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data.sources import table
from cadr.data.sources.base import Wanted
from cadr.data.sources.columns import Column, as_days, like_a_date
from cadr.data.sources.registry import open_blocks
from cadr.errors import DataError
from cadr.training.prepare import fingerprint
from tests.data.loose import open_data
from tests.report.own_runs import write_csv

N = 120
DAY = timedelta(days=1)


def moments(seed=0, gaps=True):
    """Times of four years, whole seconds, every seventh missing."""
    random = np.random.default_rng(seed)
    found = [datetime(2021, 5, 1) + timedelta(seconds=int(s)) for s in random.integers(0, 4 * 365 * 86400, N)]
    return [None if gaps and i % 7 == 3 else moment for i, moment in enumerate(found)]


def write(path, cells):
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["when", "size", "label"])
        for i, cell in enumerate(cells):
            lines.writerow(["" if cell is None else cell, i * i % 17, "xyz"[i % 3] if i % 4 else ""])
    return path


def write_parquet(path, array):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = ["xyz"[i % 3] if i % 4 else None for i in range(len(array))]
    size = [i * i % 17 for i in range(len(array))]
    parquet.write_table(pyarrow.table([array, size, labels], ["when", "size", "label"]), path)
    return path


def expected(found):
    """By datetime's own arithmetic, from the day of the median on."""
    there = sorted(moment for moment in found if moment is not None)
    middle = there[(len(there) - 1) // 2] + (there[len(there) // 2] - there[(len(there) - 1) // 2]) / 2
    since = datetime(middle.year, middle.month, middle.day)
    days = [((middle if moment is None else moment) - since) / DAY for moment in found]
    return since.date().isoformat(), np.array(days, dtype=np.float32), np.array([m is None for m in found])


SPELLINGS: dict[str, Callable[[datetime], str]] = {
    "with T": lambda m: m.isoformat(),
    "as pandas": str,
    "in UTC": lambda m: m.isoformat() + "Z",
    "in Nepal": lambda m: m.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5.75))).isoformat(),
    "as Postgres": lambda m: f"{m}.000000+00",
    "with space around": lambda m: f" {m} ",
    "as logs": lambda m: f"{m},000",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("gap", ["", "NaT", "na"])
def test_times_in_csv_are_days(spelling, gap, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 32)
    found = moments()
    since, days, missing = expected(found)
    pool = open_data(write(tmp_path / "t.csv", [gap if m is None else SPELLINGS[spelling](m) for m in found]))
    assert pool.feature_names == ("when", "when missing", "size")
    assert pool.columns[0].since == since
    np.testing.assert_array_equal(pool.examples[:, 0], days)
    np.testing.assert_array_equal(pool.examples[:, 1], missing)


@pytest.mark.parametrize("kind", ["date32", "date64", "s", "ms", "us", "ns", "zone", "categorical"])
def test_parquet_is_read_as_csv(kind, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    found = moments()
    if kind.startswith("date"):
        found = [m and datetime(m.year, m.month, m.day) for m in found]
        array = pyarrow.array([m and m.date() for m in found], getattr(pyarrow, kind)())
    elif kind == "zone":
        aware = [m and m.replace(tzinfo=UTC) for m in found]
        array = pyarrow.array(aware, pyarrow.timestamp("us", "Asia/Kathmandu"))
    elif kind == "categorical":
        array = pyarrow.array(found, pyarrow.timestamp("us")).dictionary_encode()
    else:
        array = pyarrow.array(found, pyarrow.timestamp(kind))
    pool = open_data(write_parquet(tmp_path / "t.parquet", array))
    same = open_data(write(tmp_path / "t.csv", [m and m.isoformat() for m in found]))
    assert pool.columns == same.columns
    np.testing.assert_array_equal(pool.examples, same.examples)
    since, days, missing = expected(found)
    assert pool.columns[0].since == since
    np.testing.assert_array_equal(pool.examples[:, 0], days)
    np.testing.assert_array_equal(pool.examples[:, 1], missing)


def test_dates_without_gaps_are_one_feature_and_those_of_few_days_keep_their_seconds(tmp_path):
    days = [date(2024, 2, 26 + i % 4).isoformat() for i in range(N)]  # the last is a leap day
    pool = open_data(write(tmp_path / "days.csv", days))
    assert pool.feature_names == ("when", "size")
    assert pool.columns == (Column("when", since="2024-02-27"), Column("size"))
    np.testing.assert_array_equal(pool.examples[:, 0], [i % 4 - 1 for i in range(N)])
    seconds = [f"2024-02-26 09:30:{i % 60:02}" for i in range(N)]
    found = open_data(write(tmp_path / "seconds.csv", seconds)).examples[:, 0]
    np.testing.assert_allclose(found, [(34200 + i % 60) / 86400 for i in range(N)], rtol=1e-7)
    assert len(set(found.tolist())) == 60


def test_days_in_the_order_of_the_rows_are_no_row_numbers(tmp_path):
    daily = [(date(2024, 1, 1) + i * DAY).isoformat() for i in range(N)]
    assert open_data(write(tmp_path / "t.csv", daily)).feature_names == ("when", "size")


@pytest.mark.parametrize(
    "cell",
    [
        *("03/04/2025", "3.4.2025", "20250304", "2025-W10-2", "2025-03", "2025-3-4", "2025-02-30", "2025-03-04T25:00"),
        *("2025-03-04 noon", "2025-03-04T", "٢٠٢٥-03-04", "2025-03-04T09:30:00 UTC", "now", "NaT", "0000-01-01", ""),
    ],
)
def test_what_is_no_iso_date(cell):
    assert as_days(cell) is None


def test_the_first_and_the_last_day():
    assert as_days("0001-01-01T00:00+14:00") == (date(1, 1, 1) - date(1970, 1, 1)).days - 14 / 24
    assert as_days("9999-12-31") == (date(9999, 12, 31) - date(1970, 1, 1)).days
    assert as_days("1970-01-01T00:00:00.123456789Z") == pytest.approx(0.123456 / 86400)


def test_other_dates_stay_words_and_too_many_are_told_of_iso(tmp_path):
    few = ["03/04/2025", "04/03/2025"] * (N // 2)
    assert open_data(write(tmp_path / "t.csv", few)).columns[0] == Column("when", ("03/04/2025", "04/03/2025"))
    for spelt in ("%d/%m/%Y", "%d.%m.%Y %H:%M", "%d-%b-%Y", "%d %B %Y"):
        many = [(date(2024, 1, 1) + i * DAY).strftime(spelt) for i in range(N)]
        path = write(tmp_path / "t.csv", many)
        words = (
            "120 different categories .*; dates are understood if they are written as 2025-03-04; or leave it out with"
        )
        with pytest.raises(DataError, match=words):
            open_data(path)


@pytest.mark.parametrize("word", ["Dr. Who", "flat 3/4", "1/2", "10.1.2.3.4", "tel. 030-12-34", "v1.2.3"])
def test_names_are_no_dates(word):
    assert not like_a_date(word)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (
            ["2025-03-04", "2025-03-05", "soon"],
            "line 4, column 'when': expected a date such as 2025-03-04 .*got 'soon'",
        ),
        (["2025-02-28", "2025-02-30", "2025-02-27"], "line 3, column 'when': expected a date .*got '2025-02-30'; if"),
        (["2025-02-28", "20250227", "2025-02-26"], "line 3, column 'when': expected a date .*got '20250227'; if"),
        (["1", "2", "2025-02-26"], "line 4, column 'when': expected a number, got '2025-02-26'; if"),
    ],
)
def test_a_mistake_among_dates_is_no_word(cells, words, tmp_path):
    path = write(tmp_path / "t.csv", cells * (N // 3))
    with pytest.raises(DataError, match=words):
        open_data(path)


def test_what_was_made_of_dates_is_said(tmp_path):
    since, *_ = expected(moments())
    lines = open_data(write(tmp_path / "t.csv", moments())).describe().splitlines()
    assert lines[1:3] == [
        f"Date columns, in days since the median: when ({since}).",
        f"Missing values imputed by the median and flagged by a feature: when ({since}).",
    ]


def test_other_days_are_other_data(tmp_path):
    days = [(date(2024, 1, 1) + i * i % 31 * DAY).isoformat() for i in range(N)]
    later = [day.replace("2024-", "2025-") for day in days]
    pools = [open_data(write(tmp_path / "t.csv", cells)) for cells in (days, later)]
    np.testing.assert_array_equal(pools[0].examples, pools[1].examples)
    assert fingerprint(pools[0]) != fingerprint(pools[1])


DATED = (Column("when", since="2024-01-10", fill=0.5), Column("size"))


@pytest.mark.parametrize("arrow", [True, False])
def test_new_rows_are_counted_from_the_same_day(arrow, tmp_path, monkeypatch):
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    (tmp_path / "t.csv").write_text("size,when\n1,2024-01-09T12:00Z\n2,NaT\n3,2024-01-12\n4,\n")
    (block,) = open_blocks(str(tmp_path / "t.csv"), Wanted((3,), ("x", "y"), DATED)).blocks
    assert block.examples.tolist() == [[-0.5, 0, 1], [0.5, 1, 2], [2, 0, 3], [0.5, 1, 4]]


MIXED: dict[str, tuple[tuple[Column, ...], object, str]] = {
    "a date for a number": (
        (Column("when"), Column("size")),
        date(2024, 1, 9),
        "when': expected a number, got 2024-01-09",
    ),
    "a date for a word": (
        (Column("when", words=("a",)), Column("size")),
        date(2024, 1, 9),
        "when': expected a word, got the date 2024-01-09",
    ),
    "a number for a date": (DATED, 45000, "when': expected a date, got 45000"),
    "a word for a date": (DATED, "45000", "when': expected a date such as .*, got '45000'"),
    "a gap": (
        (Column("when", since="2024-01-10"), Column("size")),
        None,
        "when': there is no date, and the table that was trained on has one in every row",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_another_kind_of_column_in_parquet_is_said(name, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns, cell, words = MIXED[name]
    kind = pyarrow.date32() if cell is None else None
    parquet.write_table(pyarrow.table({"when": pyarrow.array([cell], kind), "size": [1]}), tmp_path / "t.parquet")
    wanted = Wanted((sum(len(column.features) for column in columns),), ("x", "y"), columns)
    with pytest.raises(DataError, match=f"row 0, column '{words}"):
        list(open_blocks(str(tmp_path / "t.parquet"), wanted).blocks)


@pytest.mark.parametrize(
    ("written", "warned"),
    [
        (lambda day: f"{day:02}/4/2025", True),  # of April, or the fourth of some month
        (lambda day: f"{day} March 2025", True),
        (lambda day: f"2025-04-{day:02}", False),
        (lambda day: f"ward {day}", False),
    ],
)
def test_dates_that_pass_for_words_are_named(written, warned, tmp_path, capsys):
    rows = [[written(1 + i % 12), i * 7 % 13, "xy"[i % 2] if i < 40 else ""] for i in range(60)]
    path = write_csv(tmp_path / "t.csv", ["when", "size", "label"], rows)
    for command in (["data", "show"], ["diagnose"]):
        assert main([*command, str(path)]) == 0
        said = capsys.readouterr().out
        assert ("Warning: 'when' seems to hold dates, but" in said) == warned
