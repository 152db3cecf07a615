"""The page on convergence says what its record says."""

import json

import pytest
from benchmarks.convergence import CHOSEN, PROVING, RECORD, TRIED, config, key, planned

from benchmarks import convergence_page

NAMES = {trial.name: trial for trial in CHOSEN}


def run(accuracy, rarest=()):
    course = [[step, 1.0] for step, _ in rarest]
    return {
        "accuracy": accuracy,
        "gm": accuracy,
        "seconds": 1.0,
        "curve": course,
        "rarest": list(rarest),
        "used": course,
    }


def test_the_page_is_of_the_record():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert convergence_page.PAGE.read_text(encoding="utf-8") == convergence_page.page(record)
    assert convergence_page.FIGURE.exists()


def test_optimisers_are_compared_draw_by_draw():
    one, other = NAMES["SGD, 250 steps"], NAMES["Muon, 250 steps"]
    values = {101: (80.0, 90.0), 102: (85.0, 84.0), 103: (70.0, None)}
    runs = {}
    for seed, (sgd, muon) in values.items():
        runs[key("prove", "digits", one, seed)] = run(sgd)
        if muon is not None:
            runs[key("prove", "digits", other, seed)] = run(muon)
    mean, won, of_all = convergence_page.pairs({"runs": runs}, "digits", one, other)
    assert mean == pytest.approx(4.5)
    assert (won, of_all) == (1, 2)


def test_the_rarest_class_is_found_where_half_of_it_is():
    found = run(90.0, [[10, 0.0], [20, 50.0], [30, 20.0]])
    late, never = run(90.0, [[10, 0.0], [20, 0.0], [30, 60.0]]), run(90.0, [[10, 49.0], [20, 0.0], [30, 0.0]])
    assert convergence_page.found_at([found, late, never]) == "at step 30"
    assert convergence_page.found_at([found, never, never]) == "not within the run"


def test_settings_are_chosen_on_other_images_and_seeds_than_they_are_shown_on():
    chosen, shown = list(planned("choose", "")), list(planned("prove", ""))
    assert not {seed for *_, seed in chosen} & {seed for *_, seed in shown}
    assert {seed for *_, seed in shown} == set(PROVING)
    assert len(PROVING) == 10
    assert {config(problem, trial, seed, "choose").source.held_out for _, problem, trial, seed in chosen} == {260}
    assert {config(problem, trial, seed, "prove").source.held_out for _, problem, trial, seed in shown} == {0}
    assert all(trial.expected for trial in TRIED)
