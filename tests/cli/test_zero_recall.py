"""A class that is lost would make the geometric mean 0; what it counts as instead is said beside the mean."""

import json

import numpy as np
import pytest

from cadr.cli.compare import show
from cadr.cli.main import main
from cadr.inference.accuracy_notes import zero_recall
from cadr.inference.evaluation import summary

SENTENCE = "In the geometric mean a recall of 0 counts as 0.25 %."
RESULT = {
    "evaluated_on": "test",
    "split_sha256": None,
    "last": 75.0,
    "best": 75.0,
    "median_10": 75.0,
    "steps": 9,
    "seconds": 1.0,
}
LOST = {**RESULT, "gm": 22.36, "recall": [100.0, 100.0, 100.0, 0.0]}
FOUND = {**RESULT, "gm": 50.0, "recall": [100.0, 100.0, None, 25.0]}


def test_it_is_a_hundredth_of_chance():
    assert zero_recall([100.0, 0.0, 100.0, None]) == SENTENCE
    assert zero_recall([100.0, 0.4, None]) == ""
    assert LOST["gm"] == pytest.approx((100.0**3 * 0.25) ** 0.25, abs=0.01)  # so the mean is reckoned


def test_after_training_and_in_a_comparison(capsys):
    assert summary(LOST).endswith(f"geometric mean over the classes 22.36 %. {SENTENCE}")
    assert summary(FOUND).endswith("geometric mean over 3 of 4 classes 50.00 %.")
    show({"cap": [FOUND], "cadr": [FOUND]}, "cap")
    assert "a recall of 0" not in capsys.readouterr().out
    show({"cap": [FOUND, FOUND], "cadr": [FOUND, LOST]}, "cap")
    assert capsys.readouterr().out.count(SENTENCE) == 1


def test_in_an_evaluation_and_on_the_card(tmp_path, capsys):
    """Of a run that has not learned anything yet."""
    labels = np.arange(80) % 4
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=np.where(np.arange(80) < 40, labels, -1))
    flags = ["--steps", "1", "--batch", "4", "--ratio", "2", "--model", "mlp", "--hidden", "4", "--device", "cpu"]
    assert main(["train", str(tmp_path / "mine.npz"), *flags, "--out", str(tmp_path / "run")]) == 0
    assert 0.0 in json.loads((tmp_path / "run" / "result.json").read_text())["recall"]
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--device", "cpu"]) == 0
    assert SENTENCE in capsys.readouterr().out.splitlines()
    assert main(["export", str(tmp_path / "run"), "--formats", "safetensors", "--out", str(tmp_path / "model")]) == 0
    assert SENTENCE in (tmp_path / "model" / "MODEL_CARD.md").read_text()
