"""The order of what is said of a finished run: what decides whether to use the model before what is good to know."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cadr.inference import evaluation
from cadr.training.signature import InputSpec


def test_a_contradiction_comes_before_cautions(monkeypatch):
    labels = SimpleNamespace(words=lambda predictor, last: ["Warning: shares contradict.", "Weighted: 40 %."])
    for name, value in {
        "result": lambda out: {"evaluated_on": "validation"},
        "quoted_of": lambda found: 100.0,
        "last_evaluation": lambda out: {"confusion": [[1, 0], [0, 1]], "accuracy": 100.0},
        "better_guess": lambda judged: (0, 60.0),
        "caution_about_guess": lambda judged, names: "A guess is better.",
        "summary": lambda found: "Accuracy 100 %.",
        "caution": lambda *_: "Evaluated on 11 labels.",
        "examples_judged": lambda out: 11,
    }.items():
        monkeypatch.setattr(evaluation, name, value)
    monkeypatch.setattr(InputSpec, "read", lambda out: SimpleNamespace(class_names=("a", "b")))
    monkeypatch.setattr(evaluation.UserLabels, "of", lambda *_: labels)
    predictor: Any = object()
    assert evaluation.closing_words(Path("run"), predictor, None, None, predictor) == [
        "Accuracy 100 %.",
        "A guess is better.",
        "Warning: shares contradict.",
        "Evaluated on 11 labels.",
        "Weighted: 40 %.",
    ]
