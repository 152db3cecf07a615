"""Tables: CSV and Parquet files."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from tests.data.malformed.case import case, several


@several(
    "CsvError",
    {
        "without a label column": ("a,b\n1,2\n", "no column 'label'", "'a', 'b'"),
        "with ragged rows": ("a,label\n1,x\n1,2,3\n", "line 3", "expected 2 cells, got 3"),
        "with a column twice": ("a,a,label\n1,2,x\n", "'a' is there twice"),
        "that is not UTF-8": (b"a,label\n1,\xe9\n", "not UTF-8", "0xe9"),
        "that is empty": ("", "is empty"),
        "with an open quote": ('a,label\n1,"x\n2,y\n', "unexpected end"),
    },
    words=("t.csv",),
)
def table(folder, csv):
    (folder / "t.csv").write_bytes(csv if isinstance(csv, bytes) else csv.encode())
    return folder / "t.csv"


several(
    "TableError",
    {
        "with a word": ("a,b,label\n1,2,x\n3,red,y\n", "line 3", "'b'", "'red'"),
        "with a word among numbers and gaps": ("a,label\n1,x\n,x\n3,y\nabc,y\n", "line 5", "'a'", "got 'abc'; if"),
        "with a decimal comma": ("a;b;label\n1;red;x\n2;red;x\n12,5;;y\n", "line 4", "got '12,5' (decimals", "point"),
        "with a column of gaps": ("a,b,label\n1,,x\n2,NA,y\n", "'b' has no value in any row", "--ignore-columns b"),
        "with a word among dates": (
            "a,label\n2025-03-04,x\n,x\nsoon,y\n",
            "line 4",
            "expected a date such as",
            "got 'soon'",
        ),
        "with infinity beside words": ("a,b,label\n1,u,x\n2,v,y\ninf,,y\n", "line 4", "'a'", "inf is not a finite"),
        "with a name for every row": (
            "my name,label\n" + "".join(f"n{i},{'xy'[i % 2]}\n" for i in range(11)),
            "'my name' holds 11 different categories in 11 rows",
            "--ignore-columns 'my name'",
        ),
        "with too many words": (
            "a,label\n" + "".join(f"n{i % 51},{'xy'[i % 2]}\n" for i in range(2000)),
            "'a' holds 51 different categories in 2,000 rows, too many to learn from",
        ),
        "with texts": (
            "a,label\n" + "".join(f"note {i},{'xy'[i % 2]}\n" for i in range(5000)),
            "'a' holds more than 1,000 different categories in 5,000 rows",
        ),
        "with infinity": ("a,label\n-inf,x\n2,y\n", "line 2", "-inf is not a finite number"),
        "with a number too large": ("a,label\n1e39,x\n2,y\n", "line 2", "1e39"),
        "with a header alone": ("a,label\n", "0 rows"),
        "with labels alone": ("label\nx\ny\n", "0 features"),
    },
    words=("t.csv",),
)(table)


def parquet(folder, **columns):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


@several(
    "TableError",
    {
        "with bytes": (
            {"a": [b"x", b"y"], "label": [0, 1]},
            "'a' is binary; features must be numbers, dates or categories",
        ),
        "with spans of time": (
            {"a": [timedelta(1), timedelta(2)], "label": [0, 1]},
            "'a' is duration[us]; features must",
        ),
        "with a word among numbers": ({"a": ["1", "2", "x"], "label": [0, 1, 0]}, "row 2, column 'a'", "got 'x'; if"),
        "with a column of gaps": ({"a": [1, 2], "b": [None, None], "label": [0, 1]}, "'b' has no value in any row"),
        "with infinity and a gap": ({"a": [1.0, None, float("inf")], "label": [0, 1, 1]}, "row 2, column 'a': inf is"),
        "with labels alone": ({"label": [0, 1]}, "0 features"),
        "with labels that are immense spans of time": (
            {"a": [1, 2], "label": np.array([2**62, 1], dtype="timedelta64[s]")},
            "'label' cannot be read",
        ),
    },
    words=("t.parquet",),
)
def parquet_table(folder, columns):
    return parquet(folder, **columns)


def no_utf8():
    """An array of text of which Arrow was told that it is text."""
    import pyarrow

    return pyarrow.array([b"fine", b"\xff\xfe"]).cast(pyarrow.string(), safe=False)


@case("TableError", "t.parquet", "is damaged", "UTF8")
def parquet_with_labels_that_are_no_text(folder):
    return parquet(folder, a=[1, 2], label=no_utf8())


@case("TableError", "t.parquet", "is damaged", "UTF8")
def parquet_with_words_that_are_no_text(folder):
    return parquet(folder, a=no_utf8(), label=[0, 1])


@case("CsvError", "t.parquet", "no column 'label'")
def parquet_without_labels(folder):
    return parquet(folder, a=[1, 2])


@case("TableError", "t.parquet", "not a Parquet file")
def parquet_that_is_none(folder):
    (folder / "t.parquet").write_bytes(b"PAR1 but not really PAR1")
    return folder / "t.parquet"
