"""docs/methods.md says what the package, the recipe and the records say."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from statistics import fmean, stdev

from benchmarks.cells import EMPTY, read_records
from benchmarks.digits_table import digits

from benchmarks import methods, results, rivals
from cadr.algorithms import ALGORITHMS
from cadr.cli.recipes import read_rows

WORDS = tomllib.loads(methods.WORDS.read_text(encoding="utf-8"))
ROWS = read_rows(results.RECIPE) + read_rows(results.SUCCESSORS)


def tables(text):
    """Of each of the page's two tables: name of the algorithm -> column -> cell."""
    found = []
    for section in text.split("\n## ")[1:]:
        cells = [[c.strip() for c in line.strip("| ").split(" | ")] for line in section.splitlines() if line[:1] == "|"]
        found.append({row[1].strip("`"): dict(zip(cells[0], row, strict=True)) for row in cells[2:]})
    return found


def test_the_page_is_what_its_command_writes():
    found = json.loads(results.RIVALS.read_text(encoding="utf-8")) if results.RIVALS.exists() else {}
    expected = methods.page(WORDS, ROWS, read_records(results.RECORDS), found)
    assert methods.PAGE.read_text(encoding="utf-8") == expected, "run python benchmarks/results.py"


def test_every_method_is_described_once():
    assert WORDS.keys() == ALGORITHMS.keys()
    described, accuracy = tables(methods.page(WORDS, ROWS, [], {}))
    assert list(described) == list(accuracy) == list(ALGORITHMS)
    for row in described.values():
        file = row["file"].split("](../")[1].rstrip(")")
        assert (methods.ROOT / file).exists()


def test_published_numbers_come_from_the_recipe_and_stand_in_the_column_of_their_length():
    _, table = tables(methods.page(WORDS, ROWS, [], {}))
    rows = {row.name: row for row in ROWS}
    columns = ["published, 2^17 steps", "published, 2^20 steps"]
    assert [table["darp"][c] for c in columns] == [f"{rows['cifar10-gamma50-darp'].published:.2f}", EMPTY]
    assert [table["prg"][c] for c in columns] == [EMPTY, WORDS["prg"]["published"]]
    assert [table["freematch"][c] for c in columns] == [EMPTY, EMPTY]
    for name, about in WORDS.items():  # none is typed that the recipe has
        assert not ("published" in about and rows[f"cifar10-gamma50-{name.replace('_', '-')}"].published)
        assert ("published" in about) == ("published_steps" in about)


def record(row, steps, accuracy, **more):
    about = {"row": row, "overrides": {}, "steps": steps, "seed": 1, "median_10": accuracy}
    return {**about, "seconds": 600.0, "abreast": 1, "device": "NVIDIA H200", **more}


def test_our_numbers_are_of_plain_runs_one_length_a_column():
    records = [
        record("cifar10-gamma50-prg", 2**15, 70.0),
        record("cifar10-gamma50-prg", 2**17, 90.0),
        record("cifar10-gamma50-prg", 2**17, 92.0, seed=2),
        record("cifar10-gamma50-prg", 2**17, 10.0, seed=3, overrides={"lr": 0.1}),
        record("cifar10-gamma50-prg", 2**14, 10.0),
        record("cifar10-gamma20-prg", 2**17, 10.0),
    ]
    _, table = tables(methods.page(WORDS, ROWS, records, {}))
    assert table["prg"]["ours, 2^15 steps"] == "**70.00** (n = 1, 2^15 steps, 10.0 min, NVIDIA H200)"
    assert table["prg"]["ours, 2^17 steps"] == "**91.00 ± 1.41** (n = 2, 2^17 steps, 10.0 min, NVIDIA H200)"
    assert table["dash"]["ours, 2^15 steps"] == table["dash"]["ours, 2^17 steps"] == EMPTY


def _rivals():
    rows = {
        "FixMatch": {"algorithm": "fixmatch", "options": {}},
        "+ PRG": {"algorithm": "prg", "options": {"alpha": 2.0}},
    }
    cell = {"seed": [101, 102], "accuracy": [70.0, 72.0], "gm": [60.0, 60.0], "seconds": [3.0, 3.0]}
    return {
        "shared": rivals.SHARED,
        "rows": rows,
        "cells": {methods.SETTING: {"FixMatch": cell, "+ PRG": cell | {"accuracy": [80.0, 80.0]}}},
        "ms_per_step": {"FixMatch": 2.0, "+ PRG": 3.0},
        "examples_per_step": {"FixMatch": 288, "+ PRG": 576},
        "processor": "x86_64",
        "command": {"runs": 4, "minutes": 7.4, "processes": 2},
    }


def test_digits_and_costs_come_from_their_record():
    described, accuracy = tables(methods.page(WORDS, ROWS, [], _rivals()))
    assert accuracy["fixmatch"]["digits, 200 steps"] == "71.00 ± 1.41 (n = 2)"
    assert (described["prg"]["cost"], described["prg"]["images"]) == ("1.50×", "2.00×")
    assert (described["fixmatch"]["cost"], described["fixmatch"]["images"]) == ("1.00×", "1.00×")


def test_results_show_the_digits_table():
    text = digits(_rivals())
    assert "| + PRG (alpha = 2.0) | 80.00 ± 0.00 / 60.00 ± 0.00 | 1.50× | 2.00× |" in text
    assert "over 2 seeds" in text
    assert "4 runs on a CPU (x86_64); the last command made 4 of them in 7 minutes, 2 at a time" in text
    assert digits({}) == ""


def test_digits_of_different_lengths_stand_in_different_tables():
    found = _rivals()
    found["rows"]["+ CReST"] = {"algorithm": "crest", "options": {"steps": 1200, "evaluations": 300}}
    found["cells"][methods.SETTING]["+ CReST"] = found["cells"][methods.SETTING]["FixMatch"]
    shorter, longer = digits(found).split("\n### ")[1:]
    assert shorter.startswith("200 steps, 50 evaluations\n\n|")
    assert ("| FixMatch |" in shorter, "CReST" in shorter) == (True, False)
    assert longer.startswith("1,200 steps, 300 evaluations\n\nAs many steps as above in each of 6 generations")
    assert ("FixMatch |" in longer, "| + CReST | 71.00 ± 1.41 / 60.00 ± 0.00 |" in longer) == (False, True)
    _, table = tables(methods.page(WORDS, ROWS, [], found))
    assert [table[name]["digits, 200 steps"] for name in ("crest", "dash")] == [EMPTY, EMPTY]
    assert table["crest"]["digits, 1,200 steps"] == "71.00 ± 1.41 (n = 2)"


def test_the_benchmark_runs_every_method_with_options_it_has():
    assert {row.algorithm for row in rivals.ROWS} == ALGORITHMS.keys()
    assert len({row.name for row in rivals.ROWS}) == len({row.label for row in rivals.ROWS}) == len(rivals.ROWS)
    for row in rivals.ROWS:
        kind = ALGORITHMS[row.algorithm]
        length = {"steps", "evaluations"} if "crest" in row.algorithm else set()  # generations start afresh
        assert row.options.keys() - length <= {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
        for setting in rivals.SETTINGS:
            rivals.config(row, setting, 1, rivals.ROOT)


def test_two_tiny_runs_make_a_record(tmp_path, monkeypatch):
    monkeypatch.setattr(rivals, "SHARED", rivals.SHARED | {"steps": 4, "evaluations": 2, "batch": 4, "ratio": 1})
    monkeypatch.setattr(rivals, "SETTINGS", {k: rivals.SETTINGS[k] for k in ("γ = 50", "γ = 50, reversed")})
    monkeypatch.setattr(rivals, "SEEDS", (1,))
    out = tmp_path / "rivals.json"
    arguments = ["--methods", "logit_adjustment", "--processes", "1", "--runs", str(tmp_path), "--out", str(out)]
    assert rivals.main(arguments) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert list(record["cells"]) == ["γ = 50", "γ = 50, reversed"]
    assert all(column["+ LA loss"]["seed"] == [1] for column in record["cells"].values())


def test_what_an_earlier_record_says_of_other_rows_stays_and_of_other_settings_goes():
    row, other = rivals.ROWS[0], rivals.ROWS[1]
    cells = {"γ = 20": {row.label: {"seed": [101]}, other.label: {"seed": [101]}, "no more": {"seed": [101]}}}
    rows = {
        row.label: {"algorithm": row.algorithm, "options": {}},
        other.label: {"algorithm": other.algorithm, "options": {"threshold": 0.5}},
        "no more": {"algorithm": row.algorithm, "options": {}},
    }
    record = {"shared": rivals.SHARED, "settings": rivals.SETTINGS, "rows": rows, "cells": cells}
    assert rivals.recorded(record, rivals.ROWS) == {"γ = 20": {row.label: {"seed": [101]}}}
    assert rivals.recorded(record | {"shared": rivals.SHARED | {"steps": 4}}, rivals.ROWS) == {}
    assert rivals.recorded({}, rivals.ROWS) == {}


def test_what_is_said_of_cap_on_top_of_freematch():
    """docs/cadr.md: above CADR in every column, and the figures of one."""
    cells = json.loads(results.RIVALS.read_text(encoding="utf-8"))["cells"]
    said = " ".join((methods.ROOT / "docs" / "cadr.md").read_text(encoding="utf-8").split())
    ours, cadr, free, resampled = "+ CAP + FreeMatch, re-sampled", "+ CADR", "FreeMatch", "+ CADR, re-sampled"
    assert list(cells) == list(rivals.SETTINGS)
    assert all(fmean(column[ours]["accuracy"]) > fmean(column[cadr]["accuracy"]) for column in cells.values())
    found = [cells["γ = 50"][label]["accuracy"] for label in (ours, cadr, free, resampled)]
    shown = [f"{fmean(values):.1f} ± {stdev(values):.1f} %" for values in found]
    assert f"at γ = 50 it has {shown[0]}, CADR {shown[1]}, FreeMatch {shown[2]}." in said
    assert f"CADR with it (`cadr_resampling`) has {shown[3]} there, and the two are level on average." in said
    both = [fmean(fmean(column[label]["accuracy"]) for column in cells.values()) for label in (ours, resampled)]
    assert abs(both[0] - both[1]) < 0.5
