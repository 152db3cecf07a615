"""Predicted shares that the diagnosis of the labels contradicts."""

from __future__ import annotations

import pytest

from cadr.diagnosis.contradictions import classes_outside, outside
from cadr.diagnosis.result import ClassDiagnosis, Diagnosis

Z = {1: 1.6449, 2: 1.9600, 10: 2.5758}  # of 90 % on both sides, and of as many intervals of a tenth as much error


def diagnosis(*shares, half=0.05, unlabelled=1000, recall=0.95):
    classes = tuple(
        ClassDiagnosis(
            name=f"c{i}",
            labels=1 if q is None else 20,
            labelled_share=1 / len(shares),
            flag="not estimable" if q is None else "ok",
            share=q,
            share_interval=None if q is None else (max(0.0, q - half), min(1.0, q + half)),
            recall=None if q is None else recall,
        )
        for i, q in enumerate(shares)
    )
    return Diagnosis("d", 60, unlabelled, classes, 1.0, 0.01, recall, 0.5, 0.6, 0.1, 0.2, 0)


def test_the_classes_outside_are_named_the_farthest_first():
    found = outside(diagnosis(0.2, 0.5, 0.3), [0.605, 0.367, 0.028])
    assert found.startswith("Predicted shares of the unlabelled rows contradict cadr diagnose: 'c0' 60.5 % (estimated ")
    assert found.index("'c0' 60.5 %") < found.index("'c2' 2.8 %") < found.index("'c1' 36.7 %")
    assert "these classes" in found
    assert (found.count(". "), found[-1]) == (0, ".")  # one sentence


def test_one_class_alone():
    found = outside(diagnosis(0.2, None, 0.3), [0.2, 0.7, 0.1])
    assert "'c2' 10.0 % (estimated 23.5 to 36.5 %)" in found  # ±5 points times 2.128/1.645, z of three at once
    assert "this class" in found


def test_nothing_to_say():
    assert outside(diagnosis(0.2, 0.5, 0.3), [0.22, 0.47, 0.31]) == ""
    assert outside(diagnosis(None, None), [0.9, 0.1]) == ""  # nothing is known of either


@pytest.mark.parametrize("classes", [2, 10])
def test_intervals_hold_at_once(classes):
    found = diagnosis(*[1 / classes] * classes, half=0.02).share_intervals
    half = 0.02 * Z[classes] / Z[1]
    assert found == [pytest.approx((1 / classes - half, 1 / classes + half), abs=1e-5)] * classes


def test_a_row_more_or_less_is_no_contradiction():
    few = diagnosis(0.0, 1.0, half=0.001, unlabelled=50)
    assert outside(few, [1 / 50, 49 / 50]) == ""
    assert "'c0' 4.0 %" in outside(few, [2 / 50, 48 / 50])


def test_figures_that_look_alike_are_no_contradiction():
    many = diagnosis(0.3, 0.7, half=0.05, unlabelled=10**6)
    bound = 0.3 - 0.05 * Z[2] / Z[1]
    assert outside(many, [bound - 1e-5, 1 - bound]) == ""
    assert outside(many, [bound - 2e-3, 1 - bound + 2e-3])


def test_intervals_that_are_no_good_contradict_nobody():
    assert classes_outside(diagnosis(0.2, 0.5, 0.3, recall=0.5), [0.6, 0.37, 0.03]) == []


def test_of_many_classes_some_are_named():
    found = outside(diagnosis(*[0.1] * 10, half=0.001), [0.0] * 9 + [1.0])
    assert "'c9' 100.0 % (estimated 9.8 to 10.2 %)" in found
    assert " and 5 more; " in found
