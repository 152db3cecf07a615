"""Dataclass fields as flags."""

import argparse
from dataclasses import dataclass
from typing import Literal

import pytest

from cadr.cli.flags import add_flags, given
from cadr.cli.main import Parser
from cadr.utils.options import option


@dataclass(frozen=True)
class Part:
    steps: int = option(7, "how many")
    rate: float = option(0.5, "100 % of it")
    name: str = option("x", "a word")
    flip: bool = option(True, "mirror")
    quiet: bool = option(False, "say little")
    form: Literal["one", "two"] = option("one", "a choice")
    side: int | None = option(None, "may be left open")
    beta: float | Literal["label"] = option(0.5, "a number or a word")
    widths: tuple[int, ...] = option((1, 2), "several")
    pair: tuple[float, float] = option((0.0, 1.0), "exactly two")


def parse(*arguments: str) -> dict[str, object]:
    parser = Parser(prog="cadr")
    add_flags(parser, Part)
    return given(parser.parse_args(arguments), Part)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--steps", "3"], {"steps": 3}),
        (["--rate", "1e-3"], {"rate": 0.001}),
        (["--no-flip"], {"flip": False}),
        (["--quiet", "--flip"], {"quiet": True, "flip": True}),
        (["--form", "two"], {"form": "two"}),
        (["--side", "32"], {"side": 32}),
        (["--side", "none"], {"side": None}),
        (["--beta", "label"], {"beta": "label"}),
        (["--beta", "1"], {"beta": 1.0}),
        (["--widths", "3"], {"widths": (3,)}),
        (["--widths", "3", "4", "5"], {"widths": (3, 4, 5)}),
        (["--pair", "2", "3.5"], {"pair": (2.0, 3.5)}),
    ],
)
def test_values_have_the_type_of_their_field(arguments, expected):
    values = parse(*arguments)
    assert values == expected
    assert [type(v) for v in values.values()] == [type(v) for v in expected.values()]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--steps", "3.5"], "argument --steps: expected a whole number, got '3.5'"),
        (["--rate", "fast"], "argument --rate: expected a number, got 'fast'"),
        (["--form", "three"], "argument --form: expected one of one, two, got 'three'"),
        (["--beta", "labels"], "argument --beta: expected a number or one of label, got 'labels'"),
        (["--pair", "1"], "argument --pair: expected 2 arguments"),
        (["--step", "3"], "unrecognized arguments: --step 3"),
    ],
)
def test_a_wrong_value_costs_one_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(*arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"cadr: {sentence}; see cadr --help\n"


def test_help_shows_every_field_with_its_default():
    parser = argparse.ArgumentParser()
    add_flags(parser, Part, shown={"rate": 0.25})
    text = " ".join(parser.format_help().split())
    for expected in (
        "--steps N how many (default: 7)",
        "--rate X 100 % of it (default: 0.25)",
        "--flip, --no-flip mirror (default: on)",
        "--form {one,two} a choice (default: one)",
        "--widths N [N ...] several (default: 1 2)",
        "--side N may be left open --beta",
    ):
        assert expected in text
