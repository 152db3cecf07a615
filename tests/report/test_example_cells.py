"""What stands in the rows of examples: the cells of a table's file, the named numbers of an array, or nothing."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from cadr.algorithms import CADR
from cadr.config import Config
from cadr.report.examples import Example, row_of, with_cells


def look(feature_names: tuple[str, ...] | None = None, kind: str = "features") -> Any:
    pool = SimpleNamespace(
        feature_names=feature_names, kind=kind, examples=np.arange(12, dtype=np.float32).reshape(4, 3) / 8
    )
    return SimpleNamespace(pool=pool, rows_of_part=np.array([3, 1]))


def example(row: int | None) -> Example:
    return Example("", None, None, "unlabelled", (), row=row)


def cells(config: Config, one: Any, *rows: int | None) -> list[list[tuple[str, str]]]:
    (shown,) = with_cells(config, one, [[example(row) for row in rows]])
    return [list(each.cells) for each in shown]


def test_cells_of_a_table_stand_as_in_its_file(tmp_path):
    lines = ["id,note,price,label", 'a,"so, so",1.50,x', "b,,2,", f"c,{'long ' * 50},3,y"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    first, second, third, none = cells(Config(str(tmp_path / "t.csv"), CADR()), look(), 0, 1, 2, None)
    assert first == [("id", "a"), ("note", "so, so"), ("price", "1.50")]  # as it was written, and without the label
    assert second == [("id", "b"), ("price", "2")]  # a gap tells nothing
    assert len(third[1][1]) <= 80
    assert none == []


def test_of_many_columns_the_first_are_shown(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(f"c{i}" for i in range(30)) + ",label\n" + "1," * 30 + "x\n")
    (found,) = cells(Config(str(tmp_path / "t.csv"), CADR()), look(), 0)
    assert [name for name, _ in found] == [f"c{i}" for i in range(8)]


def test_numbers_with_names_are_shown_and_others_are_not():
    assert cells(Config("given", CADR()), look(("p", "q", "r")), 2) == [[("p", "0.75"), ("q", "0.875"), ("r", "1")]]
    assert cells(Config("given", CADR()), look(), 2) == [[]]
    assert cells(Config("given", CADR()), look(("p", "q", "r"), kind="image"), 2) == [[]]


def test_what_could_upset_the_page_is_not_shown(tmp_path):
    (tmp_path / "t.csv").write_text("a\u202eb,label\n\u202ered,x\n", encoding="utf-8")
    ((pair,),) = cells(Config(str(tmp_path / "t.csv"), CADR()), look(), 0)
    assert "\u202e" not in "".join(pair)


def test_rows_of_a_part_are_those_of_the_data():
    assert [row_of(look(), part, 1) for part in ("labelled", "unlabelled", "validation")] == [1, 1, 1]
    assert row_of(look(), "validation", 0) == 3
    alone = look()
    alone.rows_of_part = None
    assert row_of(alone, "test", 0) is None
