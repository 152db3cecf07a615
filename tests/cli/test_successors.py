"""The rows that the paper does not have."""

from pathlib import Path

from cadr.algorithms import ALGORITHMS
from cadr.cli.recipes import read_rows
from cadr.config import Config

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
PAPER = {row.name: row for row in read_rows(RECIPES / "hu2022.toml")}
OURS = {row.name: row for row in read_rows(RECIPES / "successors.toml")}
SHARED = ("data", "protocol", "n_max", "gamma", "model", "weight_decay")


def test_rows_are_valid_runs_on_the_paper_s_settings():
    assert not PAPER.keys() & OURS.keys()
    for row in OURS.values():
        paper = PAPER[f"{row.setting}-cadr"].values
        config = Config.from_dict({**row.values, "seed": 1})
        assert config.training.steps == 2**15
        assert {key: row.values[key] for key in SHARED} == {key: paper[key] for key in SHARED}


def test_every_method_has_a_row_on_this_setting():
    rows = [row for row in [*PAPER.values(), *OURS.values()] if row.setting == "cifar10-gamma50"]
    assert {row.values["algorithm"] for row in rows} == set(ALGORITHMS)
