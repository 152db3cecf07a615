"""The look at draws of labelled images: its two measures by hand, its table, and what the documentation says of it."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import draws


def test_what_is_seen_at_first_sight_are_mean_colours_of_squares():
    images = np.zeros((2, 32, 32, 3), np.uint8)
    images[0, :8, 8:16, 1] = 64  # the second square of the first row is green
    images[1, 31, 31, 2] = 64  # one of the 64 pixels of the last square is blue
    seen = draws.at_first_sight(images)
    assert seen.shape == (2, 48)
    assert [(i, j, seen[i, j]) for i, j in np.argwhere(seen)] == [(0, 4, 64.0), (1, 47, 1.0)]


def test_a_draw_misleads_where_the_wrong_class_has_the_higher_score():
    classes, score = np.array([0, 0, 0, 1, 1]), np.array([-2.0, 3.0, -1.0, 1.0, 4.0])
    rows = [np.array(drawn) for drawn in ([0, 1, 3], [1, 2, 3], [1, 3], [0, 1, 4])]
    assert [draws.misleading(score, classes, drawn, 0, 1) for drawn in rows] == [False, False, True, False]
    assert [draws.misleading(-score, classes, drawn, 1, 0) for drawn in rows] == [False, False, True, False]


def test_the_committed_table_is_that_of_the_committed_record():
    record = json.loads(draws.RECORD.read_text(encoding="utf-8"))
    assert draws.OUT.read_text(encoding="utf-8") == draws.build(record)


def test_what_is_said_of_it():
    """docs/reproduce.md, "Why classes are swapped"."""
    record = json.loads(draws.RECORD.read_text(encoding="utf-8"))
    deer, horse, ship, truck = (record["classes"].index(name) for name in ("deer", "horse", "ship", "truck"))
    seeds, others = record["seeds"], record["others"]
    assert [[deer, horse] in seeds["50"][seed] for seed in "123"] == [False, True, False]
    assert sum([deer, horse] in pairs for pairs in others["50"]) == 9
    assert not any([ship, truck] in pairs for g in seeds for pairs in seeds[g].values())
    assert sum(map(bool, others["50"])) == 112
