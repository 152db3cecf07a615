"""Remarks on a model that is worse than the commonest class as an answer to everything."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cadr.algorithms import CADR, FixMatch
from cadr.config import Config
from cadr.data import from_arrays
from cadr.diagnosis.diagnose import diagnose
from cadr.report.labels import Labels
from cadr.report.notes import Note, Weight, decide, notes
from cadr.report.runs import ReportedRun
from cadr.training.signature import InputSpec
from tests.report.reports import config, plain, written
from tests.training import tiny

MAY_BE = "It is evaluated on 12 labels; the 95 % interval is 34 to 89 %."


def run(confusion: list[list[int]], algorithm: Any = None, on: str = "validation") -> ReportedRun:
    """One that was judged, at the end."""
    judged = sum(map(sum, confusion))
    accuracy = 100 * sum(row[c] for c, row in enumerate(confusion)) / judged
    recall = [100 * row[c] / sum(row) if sum(row) else None for c, row in enumerate(confusion)]
    last = {
        "kind": "evaluation", "step": 9, "on": on, "accuracy": float(f"{accuracy:.7g}"), "gm": 50.0, "recall": recall,
        "confusion": confusion,
    }  # fmt: skip
    spec = InputSpec("features", (4,), ("ant", "bee\x07", "cat"), (40, 40, 20), 300)
    return ReportedRun(Path("mine"), "mine", 0, Config("mine", algorithm or CADR()), spec, [last], {"finished": True})


def remarks(*runs: ReportedRun, labels: Labels | None = None) -> list[str]:
    known = {} if labels is None else {run.name: labels for run in runs}
    return [note.words for note in notes(runs, known, {}) if "always answering" in note.words]


def test_what_always_answering_the_commonest_class_would_reach():
    (said,) = remarks(run([[1, 1, 0], [3, 2, 1], [0, 1, 1]]))
    assert said == (
        "The last accuracy of mine, 40.0 %, is below the 60.0 % that always answering bee\N{REPLACEMENT CHARACTER} "
        "would reach on the validation examples. The run presumes class shares, equal ones: see whether cadr diagnose "
        "estimates others, and train with --target-prior if so, or if you know better."
    )


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (CADR(target_prior=(0.5, 0.3, 0.2)), "class shares, those of its --target-prior: see whether cadr diagnose"),
        (FixMatch(), "on the held-out examples. See what cadr diagnose says of the labels."),
    ],
)
def test_what_to_look_at_is_what_the_method_has(algorithm, words):
    (said,) = remarks(run([[1, 1, 0], [3, 2, 1], [0, 1, 1]], algorithm, "held_out"))
    assert words in said


@pytest.mark.parametrize(
    ("propensity", "on", "alone"),
    [
        ((0.1, 0.9, 0.1), "validation", True),  # 22 of 47 rows right, where 20 are of the commonest class
        ((0.9, 0.1, 0.9), "validation", False),
        ((0.1, 0.9, 0.1), "test", False),
    ],
)
def test_labels_may_be_so_biased_that_a_good_model_falls_short_of_a_guess(propensity, on, alone):
    labels = Labels("", "", np.array(propensity), propensity, [], [], [])
    (said,) = remarks(run([[1, 1, 0], [3, 2, 1], [0, 1, 1]], on=on), labels=labels)
    assert ("Weighted by 1/propensity no single answer is better" in said) is alone
    assert ("--target-prior" in said) is not alone


@pytest.mark.parametrize(("on", "said"), [("validation", True), ("test", False), ("held_out", False)])
def test_labels_are_weighted_where_they_were_held_out_of_biased_ones(on, said):
    propensity = (0.5, 0.1, 0.5)
    labels = Labels("", "", np.array(propensity), propensity, [], [], [])
    judged = run([[4, 0, 0], [2, 2, 0], [0, 0, 4]], on=on)  # they stand for 8, 40 and 8 rows: 36 of 56 are right
    found = [n.words for n in notes([judged], {"mine": labels}, {}) if "count as in all rows" in n.words]
    assert [note.partition("accuracy of mine is ")[2] for note in found] == [f"64.3 %. {MAY_BE}"] * said


def test_nothing_is_weighted_by_what_the_diagnosis_says_not_to_trust():
    labels = np.repeat([0, 1, 2, -1], [40, 40, 20, 200])
    diagnosis = diagnose(from_arrays(np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32), labels))
    assert diagnosis.weak
    propensity = (0.1, 0.9, 0.1)
    known = {"mine": Labels("", "", np.array(propensity), propensity, [], [], [], diagnosis)}
    look: Any = SimpleNamespace(unlabelled=[], exchanged=[])
    found = notes([run([[1, 1, 0], [3, 2, 1], [0, 1, 1]])], known, {"mine": look})
    assert "1/propensity" not in " ".join(note.words for note in found)


@pytest.mark.parametrize(
    "confusion",
    [
        [[0, 2, 0], [0, 4, 0], [0, 0, 0]],  # the commonest class is all it answers
        [[0, 0, 1], [0, 0, 1], [0, 0, 1]],  # of thirds, as records round them
        [[0, 3333, 0], [0, 3333, 0], [0, 1, 3333]],  # better
        [[3332, 0, 0], [0, 0, 3333], [3333, 0, 0]],  # 33.32 % and 33.34 %
    ],
)
def test_what_is_no_worse_is_not_remarked(confusion):
    assert remarks(run(confusion)) == []


def test_of_several_runs_those_are_named_that_are_worse():
    worse, good = run([[1, 1, 0], [3, 2, 1], [0, 1, 1]]), run([[2, 0, 0], [0, 6, 0], [0, 0, 2]])
    assert len(remarks(good, worse, good)) == 1


def test_the_remark_is_on_the_page(tmp_path):
    out = tmp_path / "lost"
    tiny.finish(config(), out)
    page, _ = written([out], tmp_path)
    assert "always answering" not in page
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        if record["kind"] == "evaluation":
            record |= {"accuracy": 20.0, "confusion": [[3, 0, 12], [0, 3, 12], [12, 0, 3]]}
    (out / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    page, _ = written([out], tmp_path)
    assert (
        "Do not use this model yet. The last accuracy of lost, 20.0 %, is below the 33.3 % that always answering ant"
        in plain(page)
    )


def test_what_weighs_most_decides_and_the_rest_is_folded():
    one = run([[1, 1, 0], [3, 2, 1], [0, 1, 1]])
    found = [Note(Weight.KNOW, "k"), Note(Weight.CHECK, "c"), Note(Weight.STOP, "s"), Note(Weight.CHECK, "d")]
    assert decide(found, [one]) == ("stop", "Do not use this model yet.", "s", ["c", "d", "k"])
    assert decide(found, [one, one]).lead == "Do not use every one of these models yet."
    assert decide(found[:2], [one]) == ("check", "Check this before you use this model.", "c", ["k"])
    fine = "Nothing was found that speaks against using this model."
    assert decide(found[:1], [one]) == ("know", fine, "", ["k"])
    assert decide([], [one]) == ("know", fine, "", [])


def test_a_perfect_score_on_a_dozen_labels_decides_before_what_is_good_to_know():
    few = run([[4, 0, 0], [0, 4, 0], [0, 0, 3]])
    decision = decide(notes([few], {}, {}), [few])
    assert decision.style == "check"
    assert decision.words.startswith("Accuracy of mine is 100.0 %. It is evaluated on only 11 held-out labels")
    many = run([[400, 0, 0], [0, 400, 0], [0, 0, 300]])
    assert decide(notes([many], {}, {}), [many]).style == "know"
