"""Columns that tell which rows have a label are named; those that only mostly do are not."""

import pytest

from cadr.cli.main import main
from tests.data.loose import open_data
from tests.report.own_runs import write_csv

N = 60


def table(tmp_path, cell, labelled=20):
    """`cell` says what stands in a column, by row and label."""
    kinds = ["xy"[i % 2] if i < labelled else "" for i in range(N)]
    rows = [[i * 7 % 13, cell(i, kind), kind] for i, kind in enumerate(kinds)]
    return write_csv(tmp_path / "t.csv", ["size", "by whom", "label"], rows)


@pytest.mark.parametrize(
    "cell",
    [
        lambda i, kind: kind or "pending",
        lambda i, kind: kind and ["Ann", "Bob"][i % 3 > 0],
        lambda i, kind: "" if kind else ["Ann", "Bob"][i % 3 > 0],
        lambda i, kind: kind and i / 4,  # a time, missing where nobody has labelled the row
        lambda i, kind: i / 4 if kind else -1,  # or a number that stands for that
        lambda i, kind: 9999 if kind else i / 4,
    ],
)
def test_who_labelled_is_no_feature(cell, tmp_path, capsys):
    path = table(tmp_path, cell)
    words = "Warning: 'by whom' leaks which rows are labelled"
    for command in (["data", "show"], ["diagnose"]):
        assert main([*command, str(path)]) == 0
        said = capsys.readouterr().out
        assert words in said
        assert "leave it out with --ignore-columns 'by whom'." in said
    assert main(["data", "show", str(path), "--ignore-columns", "by whom"]) == 0
    assert words not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cell", "labelled"),
    [
        (lambda i, kind: (kind or "pending") if i else "pending", 20),  # a word in common
        (lambda i, kind: "Ann" if kind and i else "", 20),  # a blank in common
        (lambda i, kind: i if i in (1, 40) or not kind else "", 20),  # a number in common
        (lambda i, kind: "same", 20),
        (lambda i, kind: i / 4 if kind and i else -1, 20),  # the number that stands for none, in common
        (lambda i, kind: i % 2 if kind else 2 + i % 2, 20),  # several numbers on either side
        (lambda i, kind: 3, 20),
        (lambda i, kind: kind or "pending", 8),  # too few to tell chance
    ],
)
def test_what_other_rows_have_too_may_be_one(cell, labelled, tmp_path):
    assert "only tells" not in open_data(table(tmp_path, cell, labelled)).describe()
