"""A sitting without a page: what is asked in which order, what is written when, and what comes back with undo."""

import csv
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.config import Config
from cadr.data.pool import Pool
from cadr.errors import CadrError
from cadr.label.display import Display
from cadr.label.opened import open_run
from cadr.label.session import Session
from cadr.label.trainer import Trainer
from tests.label.runs import copied
from tests.report.own_runs import NAMES, TINY, read_csv


@pytest.fixture
def run(squares, tmp_path):
    return copied(squares, tmp_path)


@pytest.fixture
def session(run):
    return Session(run, device="cpu")


def truth(name):
    return "light" if int(name[:3]) % 2 else "dark"


def test_the_least_sure_is_asked_for_first_and_no_labelled_one(session, run):
    opened = open_run(run, device="cpu")
    apart = np.abs(opened.probabilities[:, 0] - opened.probabilities[:, 1])
    state = session.state()
    assert state["asked"] == 24
    assert state["example"]["row"] == int(opened.rows[apart.argmin()])
    asked = []
    while state["example"] is not None:
        asked.append(state["example"]["name"])
        state = session.skip(state["example"]["row"])
    assert sorted(asked) == [f"{i:03}.png" for i in range(16, 40)]
    assert state["passed"] == 24


def test_every_answer_is_on_disk_before_the_next_question(session, run):
    csv_path = run.parent / "labels.csv"
    before = csv_path.read_bytes()
    state = session.state()
    for number in range(1, 4):
        name = state["example"]["name"]
        state = session.label(state["example"]["row"], truth(name))
        assert csv_path.read_bytes().startswith(before)
        assert read_csv(csv_path)[-1] == {"file": name, "label": truth(name)}
        assert state["labelled"] == number
    for _ in range(3):
        state = session.undo()
    assert csv_path.read_bytes() == before
    assert state["labelled"] == state["passed"] == 0
    assert not state["can_undo"]
    assert session.undo() == state


def test_guesses_are_the_models(session):
    example = session.state()["example"]
    opened = session.opened
    (place,) = np.flatnonzero(opened.rows == example["row"])
    p = opened.probabilities[place]
    assert [name for name, _ in example["guesses"]] == [opened.class_names[c] for c in np.argsort(-p)]
    assert [share for _, share in example["guesses"]] == pytest.approx(sorted(p, reverse=True))


def test_a_key_pressed_twice_answers_once(session, run):
    state = session.state()
    row = state["example"]["row"]
    first = session.label(row, "dark")
    assert session.label(row, "light") == first
    assert session.skip(row) == first
    assert len(read_csv(run.parent / "labels.csv")) == 17


def test_what_nobody_can_tell_is_not_asked_again(session, run):
    state = session.state()
    name, row = state["example"]["name"], state["example"]["row"]
    session.skip(row, cannot_tell=True)
    session._load(run)
    assert session.state()["asked"] == 23
    assert name not in {session.display.name(int(session.opened.rows[i])) for i in session.queue}
    session.undo()  # of the new sitting, which has nothing yet
    assert session.state()["asked"] == 23


def test_undo_takes_that_back_too(session, run):
    session.skip(session.state()["example"]["row"], cannot_tell=True)
    session.undo()
    session._load(run)
    assert session.state()["asked"] == 24


def test_after_each_ten_it_says_what_they_imply(session):
    state = session.state()
    for number in range(1, 21):
        state = session.label(state["example"]["row"], "dark")  # all of them
        assert (state["implied"] is None) == (number < 10)
        if number >= 10:
            assert state["implied"]["answers"] == number // 10 * 10
    dark = next(c for c in state["implied"]["classes"] if c["name"] == "dark")
    assert dark["given"] == 20
    assert dark["low"] <= dark["implied"] <= dark["high"]
    assert dark["implied"] > dark["believed"]


def test_only_classes_that_there_are_and_nothing_when_the_disk_refuses(session, run):
    row = session.state()["example"]["row"]
    with pytest.raises(CadrError, match="there is no class 'grey'"):
        session.label(row, "grey")
    labels = run.parent / "labels.csv"
    labels.rename(run.parent / "away.csv")
    labels.mkdir()
    with pytest.raises((CadrError, OSError)):
        session.label(row, "dark")
    state = session.state()
    assert (state["example"]["row"], state["labelled"], state["can_undo"]) == (row, 0, False)


def test_labels_since_training_are_seen_and_a_new_class_can_be_chosen(run):
    with (run.parent / "labels.csv").open("a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(["016.png", "grey"])
    session = Session(run, device="cpu")
    state = session.state()
    assert state["asked"] == 23
    assert state["classes"] == ["dark", "light", "grey"]
    row = state["example"]["row"]
    session.label(row, "grey")
    assert read_csv(run.parent / "labels.csv")[-1]["label"] == "grey"


def test_a_table_is_shown_as_it_stands_and_answers_go_beside_it(trees, tmp_path):
    run = copied(trees, tmp_path)
    session = Session(run, most=5, device="cpu")
    state = session.state()
    assert state["asked"] == 5
    example = state["example"]
    rows = read_csv(run.parent / "trees.csv")
    shown = dict(example["cells"])
    assert shown == {name: cell for name, cell in rows[example["row"]].items() if name != "label"}
    assert example["name"] == f"tree-{example['row']}"
    assert example["picture"] is None
    session.label(example["row"], str(NAMES[2]))
    assert [line["label"] for line in read_csv(run.parent / "trees.labels.csv")] == [NAMES[2]]
    again = Session(run, device="cpu")
    assert again.opened.num_unlabelled == 44
    assert "--labels" in again.state()["command"]


def test_texts_and_rows_of_arrays_are_shown(tmp_path):
    (tmp_path / "a.txt").write_text("<b>bold</b>\nsecond line", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes(b"not UTF-8: \xe9")
    x, labels = np.arange(4, dtype=np.float32).reshape(2, 2), np.array([0, 1])
    pool = Pool(x, labels, ("p", "q"), identifiers=("a.txt", "b.txt"))
    config = Config.from_dict({"data": str(tmp_path), "algorithm": "cadr"})
    display = Display(config, pool, np.arange(2))
    assert display.shown(0).text == "<b>bold</b>\nsecond line"
    assert display.shown(1).text == "not UTF-8: \N{REPLACEMENT CHARACTER}"
    array = Display(Config.from_dict({"data": "x.npy", "algorithm": "cadr"}), Pool(x, labels, ("p", "q")), np.arange(2))
    assert array.shown(1).cells == (("0", "2"), ("1", "3"))
    assert array.shown(1).name == "row 1"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "is not a run: there is no such folder"),
        (["RUN", "--most", "0"], "most must be at least 1"),
        (["RUN", "--rows", "0"], "rows must be at least 1"),
        (["RUN", "--port", "70000"], "expected a number from 0 to 65535"),
    ],
)
def test_what_cannot_be_labelled_is_one_sentence(run, arguments, sentence, capsys):
    assert main(["label", *(str(run) if word == "RUN" else word for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_of_a_benchmark_all_labels_are_known(run, capsys):
    config = run / "config.toml"
    text = config.read_text(encoding="utf-8").replace(f'data = "{run.parent / "squares"}"', 'data = "digits"')
    config.write_text(text, encoding="utf-8")
    assert main(["label", str(run)]) == 2
    assert "trained on data whose labels are all known; there is nothing to ask for" in capsys.readouterr().err


def test_where_all_is_labelled_there_is_nothing_to_ask_for(run, capsys):
    with (run.parent / "labels.csv").open("a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([f"{i:03}.png", "dark"] for i in range(16, 40))
    assert main(["label", str(run)]) == 2
    assert "every example has a label" in capsys.readouterr().err


def test_training_on_goes_on_with_the_new_run(session, run):
    state = session.state()
    for _ in range(4):
        state = session.label(state["example"]["row"], truth(state["example"]["name"]))
    assert state["command"].endswith(f"--out {run}-2")
    assert session.train()["training"]["running"]
    assert not session.undo()["can_undo"] or session.state()["labelled"] == 4  # nothing changes while it trains
    session.trainer.wait()
    state = session.state()
    assert state["training"]["problem"] == ""
    assert state["run"] == f"{run}-2"
    assert state["asked"] == 20
    assert (state["labelled"], state["total"]) == (0, 4)
    assert state["command"].endswith(f"--out {run}-3")
    config = (run.parent / "run-2" / "config.toml").read_text(encoding="utf-8")
    assert f"steps = {TINY[1]}" in config


def test_training_that_fails_is_said_and_the_sitting_goes_on(session, run):
    state = session.label(session.state()["example"]["row"], "dark")
    (run.parent / "squares" / "017.png").write_bytes(b"no picture")
    session.train()
    session.trainer.wait()
    state = session.state()
    assert "Training did not end well" in state["training"]["problem"]
    assert "017.png" in state["training"]["problem"]
    assert state["run"] == str(run)
    assert session.undo()["labelled"] == 0


def test_what_training_prints_is_passed_on(monkeypatch, capfd):
    from cadr.label import trainer

    monkeypatch.setattr(trainer, "_PROGRAM", [sys.executable, "-c"])
    done: list[Path] = []
    training = Trainer(done.append)
    training.start(["print('step 1'); print('step 2'); print()"], Path("out"))
    training.wait()
    assert training.state() == {"running": False, "line": "step 2", "problem": ""}
    assert done == [Path("out")]
    assert capfd.readouterr().out == "step 1\nstep 2\n\n"


def test_ctrl_c_ends_it_and_says_what_to_do_next(run):
    program = [sys.executable, "-m", "cadr", "label", str(run), "--device", "cpu"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = ""
    while "Ctrl-C ends it" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    assert re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/\n", said)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert f"0 labelled; they are in {run.parent / 'labels.csv'}." in rest
