"""The table of short runs, of records made up for it."""

import numpy as np
import pytest
from benchmarks.cells import read_records
from benchmarks.short_runs import keeps_its_classes, short_runs

from benchmarks import reproduce, results
from tests.benchmarks.test_results import ROWS


def record(row="fast:a", seed=1, right=90, steps=8192, **more):
    confusion = np.full((3, 3), (100 - right) // 2)
    np.fill_diagonal(confusion, right)
    base = {"row": row, "overrides": {}, "seed": seed, "steps": steps, "median_10": float(right), "minutes": None}
    return base | {"confusion": confusion.tolist(), "recall": [float(right)] * 3, "wall_seconds": 100.0} | more


def lines(text):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][2:]


def test_seeds_of_a_length_are_one_line_beside_sgd_s():
    records = [
        *(record(seed=1, right=90), record(seed=2, right=96), record("a", right=50, wall_seconds=None)),
        *(record("a", steps=4096), record("b"), record(steps=36_000, minutes=3.0)),
        record(overrides={"muon_lr": 0.05}),
    ]
    assert lines(short_runs(records)) == [
        ["a", "·", "2^13 steps", "Muon", "2", "93.00 ± 4.24", "90.00", "2 of 2", "100"],
        ["a", "·", "2^13 steps", "SGD", "1", "50.00", "50.00", "1 of 1", "·"],
        ["a", "·", "3 minutes", "Muon", "1", "90.00", "90.00", "1 of 1", "100"],
        ["a", "muon_lr = 0.05", "2^13 steps", "Muon", "1", "90.00", "90.00", "1 of 1", "100"],
    ]
    assert short_runs([record("a")]) == ""


@pytest.mark.parametrize(
    ("confusion", "kept"),
    [
        ([[9, 1, 0], [0, 9, 1], [1, 0, 9]], True),
        ([[0, 9, 1], [9, 1, 0], [0, 0, 10]], False),  # exchanged
        ([[9, 1, 0], [0, 10, 0], [5, 5, 0]], False),  # lost
    ],
)
def test_a_draw_loses_a_class_or_exchanges_two(confusion, kept):
    found = [100 * row[i] / sum(row) for i, row in enumerate(confusion)]
    assert keeps_its_classes({"confusion": confusion, "recall": found}) is kept


def test_the_results_hold_it(tmp_path):
    plain = read_records(results.RECORDS)
    assert "## Short runs" not in results.build(ROWS, [r for r in plain if not r["row"].startswith("fast:")], {}, False)
    short = plain[0] | {"row": "fast:cifar10-gamma50-cadr", "overrides": {}, "minutes": 3.0, "wall_seconds": 170.0}
    text = results.build(ROWS, [*plain, short], {}, False)
    assert "| cifar10-gamma50-cadr | · | 3 minutes | Muon | 1 |" in text


def test_rows_of_short_runs_have_names_of_their_own():
    flags = ["--device", "cpu"]
    (job,) = reproduce.plan(["fast:cifar10-gamma50-cadr"], [2], flags)
    assert (job.name, job.steps, job.overrides) == ("fast-cifar10-gamma50-cadr-minutes3-seed2", None, {})
    assert job.command(reproduce.ROOT)[4].endswith("recipes/fast.toml:cifar10-gamma50-cadr")
    (job,) = reproduce.plan(["fast:cifar10-gamma50-cadr"], [2], [*flags, "--minutes", "6", "--muon-lr", "0.05"])
    assert job.name == "fast-cifar10-gamma50-cadr-muon-lr-0.05-minutes6-seed2"
    (job,) = reproduce.plan(["fast:cifar10-gamma50-cadr"], [2], [*flags, "--steps", "8192"])
    assert job.name == "fast-cifar10-gamma50-cadr-steps8192-seed2"
