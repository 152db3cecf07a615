import json

import numpy as np
import pytest

from cadr.cli import diagnose as command
from cadr.cli import main as cli
from cadr.cli.main import main
from cadr.diagnosis.result import CAVEAT

ROWS = 240


def run(capsys, *arguments):
    try:
        status = main(["diagnose", *map(str, arguments)])
    except SystemExit as stop:
        status = int(stop.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def write_table(folder, label=lambda i: ("cat", "dog", "emu")[i % 3] if i % 12 < 3 or i % 3 == 0 else ""):
    """Three classes; cats are labelled always, the others a quarter of the time."""
    random = np.random.default_rng(0)
    lines = ["label,length,weight"]
    for i in range(ROWS):
        x = random.normal(size=2) + np.array([3 * (i % 3), 2 * (i % 3 == 1)])
        lines.append(f"{label(i)},{x[0]:.4f},{1000 * x[1]:.4f}")
    (folder / "mine.csv").write_text("\n".join(lines) + "\n")
    return folder / "mine.csv"


def test_verdict_table_bars_and_caveat(capsys, tmp_path):
    status, text, error = run(capsys, write_table(tmp_path))
    assert (status, error) == (0, "")
    assert text.startswith("Labels are NOT missing at random (p < 0.001): class ")
    assert "than class cat, if the class alone decides." in text
    cat = next(line for line in text.splitlines() if line.startswith("cat"))
    assert cat.split()[1] == "80"
    assert "unlabelled  █" in text
    assert text.rstrip().endswith(CAVEAT)


def test_a_class_that_nobody_labelled_can_be_named(capsys, tmp_path):
    table = write_table(tmp_path)
    status, text, _ = run(capsys, table, "--unlabelled-classes", "fox")
    assert status == 0
    fox = next(line for line in text.splitlines() if line.startswith("fox"))
    assert fox.split()[1] == "0"
    assert fox.endswith("not estimable")
    status, _, error = run(capsys, table, "--unlabelled-classes", "emu")
    assert (status, error) == (2, "cadr: mine: class 'emu' is named twice\n")


@pytest.mark.parametrize("command", [["diagnose"], ["data", "show"]])
def test_a_table_with_identifiers(command, capsys, tmp_path):
    """The sentence about the column names the remedy, and the remedy works."""
    lines = write_table(tmp_path).read_text().splitlines()
    data = tmp_path / "named.csv"
    data.write_text("\n".join([f"id,{lines[0]}", *(f"row-{i},{line}" for i, line in enumerate(lines[1:]))]) + "\n")
    assert main([*command, str(data)]) == 2
    error = capsys.readouterr().err
    assert f"column 'id' holds {ROWS} different categories in {ROWS} rows, too many to learn from" in error
    assert "leave it out with --ignore-columns id if" in error
    assert main([*command, str(data), "--ignore-columns", "id"]) == 0
    assert "cat" in capsys.readouterr().out


def test_the_seed_is_that_of_the_command(capsys, tmp_path):
    _, text, _ = run(capsys, write_table(tmp_path), "--json", "--seed", 7)
    assert json.loads(text)["seed"] == 7


def test_json_is_all_there_is(capsys, tmp_path):
    status, text, _ = run(capsys, write_table(tmp_path), "--json")
    found = json.loads(text)
    assert status == 0
    assert [c["name"] for c in found["classes"]] == ["cat", "dog", "emu"]
    assert found["labelled"] + found["unlabelled"] == ROWS
    assert found["missing_at_random"] is False


def test_a_terminal_shows_the_same_figures(capsys, tmp_path, monkeypatch):
    plain = run(capsys, write_table(tmp_path))[1]
    monkeypatch.setattr(command, "fancy", lambda: True)
    drawn = run(capsys, write_table(tmp_path))[1]
    figures = next(line for line in plain.splitlines() if line.startswith("emu")).split()
    assert all(figure in drawn for figure in figures)
    assert " ".join(drawn.split()).startswith(" ".join(plain.splitlines()[0].split()))


def test_a_benchmark_needs_a_split(capsys, tmp_path):
    status, _, error = run(capsys, "digits")
    assert status == 2
    assert "--split" in error
    main(["data", "split", "digits", "--n-max", "30", "--gamma", "10", "--out", str(tmp_path / "s.json")])
    capsys.readouterr()
    assert run(capsys, "digits", "--split", tmp_path / "s.json")[0] == 0


def test_it_is_among_the_commands(capsys):
    assert "diagnose" in cli.COMMANDS
    status, text, _ = run(capsys, "--help")
    assert status == 0
    assert "--labels" in text
    assert "--json" in text


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (lambda i: "cat" if i % 2 else "", "two classes"),
        (lambda i: "", "two classes"),
        (lambda i: ("cat", "dog", "emu")[i % 3], "no label is missing"),
        (lambda i: {0: "cat", 1: "dog"}.get(i, ""), "more than one label"),
    ],
    ids=["one class only", "every label missing", "no label missing", "one label each"],
)
def test_hopeless_labels_are_one_sentence(capsys, tmp_path, label, words):
    status, text, error = run(capsys, write_table(tmp_path, label))
    assert (status, text) == (2, "")
    assert error.count("\n") == 1
    assert words in error


def test_a_column_without_numbers_is_one_sentence(capsys, tmp_path):
    path = write_table(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0] + ",age", *(line + ",nan" for line in lines[1:])]) + "\n")
    status, text, error = run(capsys, path)
    assert (status, text) == (2, "")
    assert error.count("\n") == 1
    assert "column 'age' has no value in any row; leave it out with --ignore-columns age" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv",), "neither a file"),
        (("digits", "--seed", "-1"), "--seed"),
        (("digits", "--split", "no"), "split"),
    ],
)
def test_wrong_arguments_are_one_sentence(capsys, arguments, words):
    status, text, error = run(capsys, *arguments)
    assert (status, text) == (2, "")
    assert error.count("\n") == 1
    assert words in error
