"""`cadr evaluate`."""

import json
import re

import numpy as np
import pytest

from cadr.cli.evaluate import class_table
from cadr.cli.main import main
from tests.data.loose import open_data

TINY = ["--steps", "8", "--batch", "8", "--ratio", "2", "--evaluations", "2", "--model", "mlp", "--hidden", "8"]


def test_a_run_is_evaluated_again_to_the_same_numbers(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["train", "digits", "--protocol", "longtail", "--out", str(out), *TINY]) == 0
    result = json.loads((out / "result.json").read_text())
    capsys.readouterr()
    assert main(["evaluate", str(out), "--device", "cpu"]) == 0
    text = capsys.readouterr().out
    assert (
        f"Accuracy {result['last']:.2f} %, geometric mean over the classes {result['gm']:.2f} %, after 8 of 8" in text
    )
    lines = [line.split()[:4] for line in text.splitlines() if re.match(r"\d ", line)]
    labels = [50, 33, 21, 14, 9, 6, 4, 3, 2, 1]
    judged = np.bincount(open_data("digits").test_labels)
    expected = [[str(c), str(labels[c]), str(judged[c]), f"{result['recall'][c]:.1f}"] for c in range(10)]
    assert lines == expected


@pytest.mark.parametrize("command", [["evaluate"], ["report"], ["export"], ["predict", "x.npy", "--out", "p.csv"]])
def test_a_run_that_is_not_there_is_not_to_be_trained_first(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command[0], "rnu", *command[1:]]) == 2
    assert capsys.readouterr().err == "cadr: rnu is not a run: there is no such folder.\n"


def test_a_class_is_shown_with_what_it_is_mistaken_for():
    scores = {
        "class_names": ["cat", "dog", "owl"],
        "recall": [80.0, 100.0, None],
        "confusion": [[8, 1, 1], [0, 5, 0], [0, 0, 0]],
    }
    assert class_table(scores, [5, 2, 1]) == (
        ["class", "labels", "evaluated on", "recall, %", "mostly mistaken for"],
        [["cat", "5", "10", "80.0", "dog (10.0 %)"], ["dog", "2", "5", "100.0", "–"], ["owl", "1", "0", "–", "–"]],
    )


def test_a_few_labels_held_out_come_with_a_caution(tmp_path, capsys):
    """A class with one label has none to be judged on, and 100 % of a few labels is no 100 %."""
    labels = np.array([0] * 10 + [1] * 10 + [2] + [-1] * 19)
    x = np.random.default_rng(0).normal(size=(40, 3)) + 9.0 * np.eye(3)[np.maximum(labels, 0)]
    np.savez(tmp_path / "mine.npz", x=x.astype(np.float32), y=labels)
    assert main(["train", str(tmp_path / "mine.npz"), *TINY, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    caution = "It is evaluated on only 4 held-out labels; the 95 % interval on rows like the labelled ones is "
    assert caution in said
    assert f"cadr predict {tmp_path / 'run'} DATA --out predictions.csv" in said
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "geometric mean over 2 of 3 classes" in said
    assert caution in said
    assert "as biased as all labels" in said


def test_a_model_that_is_worse_than_one_answer_is_told_so(tmp_path, capsys):
    """It learns from features that say nothing, and is told that the rarer class is the commoner one."""
    labels = np.array([0] * 30 + [1] * 10 + [-1] * 60)
    x = np.random.default_rng(0).normal(size=(100, 3))
    np.savez(tmp_path / "mine.npz", x=x.astype(np.float32), y=labels, class_names=["ant", "bee"])
    run = str(tmp_path / "run")
    assert main(["train", str(tmp_path / "mine.npz"), "--target-prior", "1", "9", *TINY, "--out", run]) == 0
    remark = "Always answering ant would be right for 75.0 % of the 8 held-out labels.\n"
    remark += "It is evaluated on only 8 held-out labels; "
    assert remark in capsys.readouterr().out
    assert main(["evaluate", run]) == 0
    assert remark in capsys.readouterr().out
    assert main(["export", run, "--formats", "safetensors", "--out", str(tmp_path / "exported")]) == 0
    assert remark.replace("\n", " ") in (tmp_path / "exported" / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_a_name_that_a_terminal_would_obey_is_shown_in_the_remark(tmp_path, capsys):
    labels = np.array([0] * 30 + [1] * 10 + [-1] * 60)
    x = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=labels, class_names=["a\n|\x1b[31m*t*", "bee"])
    run = str(tmp_path / "run")
    assert main(["train", str(tmp_path / "mine.npz"), "--target-prior", "1", "9", *TINY, "--out", run]) == 0
    assert "Always answering a\\n|\\x1b[31m*t* would be right" in capsys.readouterr().out
    assert main(["export", run, "--formats", "safetensors", "--out", str(tmp_path / "exported")]) == 0
    card = (tmp_path / "exported" / "MODEL_CARD.md").read_text(encoding="utf-8")
    shown = r"a\\n\|\\x1b\[31m\*t\*"
    assert f"Always answering {shown} would be right" in card
    assert f"\n| {shown} | 30 |" in card


def test_a_benchmark_is_compared_with_a_guess_by_the_accuracy_that_is_quoted(tmp_path, capsys, monkeypatch):
    """56 % are quoted and 54 % came last, where one answer is right for 56 %: then nothing is remarked."""
    run, command = str(tmp_path / "run"), ["--protocol", "longtail", "--n-max", "10", "--gamma", "2", *TINY]
    for quoted, remarked in ((56.0, False), (55.0, True)):
        evaluation = {"kind": "evaluation", "step": 1, "on": "test", "accuracy": 54.0, "confusion": [[56, 0], [44, 0]]}
        monkeypatch.setattr("cadr.inference.evaluation.last_evaluation", lambda out, said=evaluation: said)
        monkeypatch.setattr("cadr.inference.evaluation.quoted_of", lambda result, said=quoted: said)
        assert main(["train", "digits", *command, "--out", run]) == 0
        said = "Always answering 0 would be right for 56.0 % of the 100 test examples."
        assert (said in capsys.readouterr().out) is remarked


def test_nothing_to_evaluate_is_one_sentence(tmp_path, capsys, monkeypatch):
    assert main(["evaluate", str(tmp_path / "none")]) == 2
    monkeypatch.chdir(tmp_path)
    labels = np.array([0, 1] * 9 + [-1, -1])
    np.savez("mine.npz", x=np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32), y=labels)
    assert main(["train", "mine.npz", *TINY, "--validation", "0", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 2
    error = capsys.readouterr().err
    assert "no test set" in error
    assert error.count("\n") == 1
