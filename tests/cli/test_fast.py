"""The rows of short runs: the paper's settings, moved by Muon, and expectations that a record stands behind."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path

import pytest

from cadr.cli.main import main
from cadr.cli.recipes import read_rows
from cadr.config import Config
from cadr.optim import Muon

ROOT = Path(__file__).resolve().parents[2]
PAPER = {row.name: row for row in read_rows(ROOT / "recipes" / "hu2022.toml")}
FAST = {row.name: row for row in read_rows(ROOT / "recipes" / "fast.toml")}


def test_rows_are_the_paper_s_but_for_their_length_and_the_optimiser():
    shared = FAST.keys() & PAPER.keys()
    assert {"cifar10-gamma50-cadr", "cifar10-gamma20-fixmatch", "cifar100-gamma50-cadr"} <= shared
    for name in shared:
        assert FAST[name].published == PAPER[name].published
        ours, theirs = (Config.from_dict(rows[name].values) for rows in (FAST, PAPER))
        assert ours == dataclasses.replace(theirs, optimiser=ours.optimiser, training=ours.training)
        assert ours.training == dataclasses.replace(theirs.training, steps=2**17, minutes=ours.training.minutes)


def test_rows_are_valid_runs_that_end_in_minutes():
    for row in FAST.values():
        config = Config.from_dict({**row.values, "seed": 1})
        assert isinstance(config.optimiser, Muon)
        assert config.training.minutes in (3, 20)
        assert "steps" not in row.values


@pytest.mark.parametrize("name", FAST)
def test_what_is_expected_has_a_record(name):
    records = [json.loads(path.read_text()) for path in (ROOT / "benchmarks" / "records").glob(f"fast-{name}-*.json")]
    plain = [r["median_10"] for r in records if r["row"] == f"fast:{name}" and not r["overrides"] and r["minutes"]]
    assert FAST[name].expected == (f"{statistics.median(plain):.2f}" if plain else "not run yet")


def test_the_list_of_recipes_says_how_long_they_take_and_what_to_expect(capsys):
    assert main(["recipes", str(ROOT / "recipes" / "fast.toml"), "--only", "gamma50-cadr-renaming"]) == 0
    said = capsys.readouterr().out
    assert "3 min" in said
    assert "expected" in said
    assert FAST["cifar10-gamma50-cadr-renaming"].expected in said
