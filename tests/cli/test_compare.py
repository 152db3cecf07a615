"""`cadr compare` and `cadr demo`: several real, tiny runs."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from cadr.cli import compare
from cadr.cli.main import INTERRUPTED, Parser, main
from cadr.cli.run_flags import not_concerned
from cadr.training.plan import Opened
from tests.waiting import PATIENCE, until

TINY = ["--steps", "6", "--batch", "4", "--ratio", "2", "--evaluations", "2", "--model", "mlp", "--hidden", "8"]
SPLIT = ["--protocol", "longtail", "--n-max", "20", "--gamma", "20"]
COMPARE = ["compare", "digits", *SPLIT, *TINY]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_algorithms_times_seeds(tmp_path, capsys, processes):
    command = [*COMPARE, "--algorithms", "fixmatch", "cai", "--seeds", "2", "--seed", "5", "--beta", "0.25"]
    command += ["--out", str(tmp_path), "--processes", processes]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "--beta does not apply to fixmatch."
    results = {path.name: json.loads((path / "result.json").read_text()) for path in tmp_path.iterdir()}
    assert sorted(results) == ["cai-seed5", "cai-seed6", "fixmatch-seed5", "fixmatch-seed6"]
    assert results["cai-seed5"]["options"] == {"beta": 0.25}
    assert results["fixmatch-seed5"]["options"] == {}
    assert results["cai-seed6"]["split_sha256"] == results["fixmatch-seed6"]["split_sha256"]
    mean = sum(results[f"cai-seed{seed}"]["median_10"] for seed in (5, 6)) / 2
    assert re.search(rf"^CAI +{mean:.1f} ± ", text, re.MULTILINE)
    assert "Highest accuracy over 2 seeds" in text
    assert f"After {results['cai-seed5']['steps']} steps, mean ± standard deviation over 2 seeds" in text

    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/metrics.jsonl")}
    assert main([*command, "--seeds", "3"]) == 0  # one seed more: only that is run
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/metrics.jsonl")}
    assert len(after) == 6
    assert {path: after[path] for path in before} == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--algorithms", "fixmatch", "cdar"], "--algorithms: expected names out of supervised"),
        (["--algorithms", "fixmatch", "--beta", "1"], "unrecognized arguments: --beta 1"),
        (["--seeds", "0"], "--seeds: expected a whole number from 1 to 1000, got '0'"),
    ],
)
def test_mistakes(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*COMPARE, *arguments])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def configs_of(arguments):
    parser = Parser()
    compare.add(parser.add_subparsers())
    namespace = parser.parse_args(arguments)
    plans = compare.read_plans(namespace, Opened())
    return {name: planned.config.algorithm for name, planned in plans}, not_concerned(namespace)


SHARES = ["--target-prior", *"1112111111"]


@pytest.mark.parametrize(
    ("flags", "takers", "words"),
    [
        (["fixmatch", "cadr", *SHARES], ["cadr"], "fixmatch (without --alignment given)."),
        (["darp", "cai", "cap", *SHARES], ["cap"], "darp (without --target given), cai."),
        (["fixmatch", "darp", "cap", *SHARES, "--alignment", "given"], ["fixmatch", "cap"], "darp (without --target"),
        (["cap", "cadr", *SHARES], ["cap", "cadr"], None),
    ],
)
def test_a_target_goes_to_those_that_take_one(flags, takers, words):
    algorithms, said = configs_of([*COMPARE, "--seeds", "1", "--algorithms", *flags])
    shares = tuple(map(float, SHARES[1:]))
    assert [name for name, kind in algorithms.items() if getattr(kind, "target_prior", ()) == shares] == takers
    about = [line for line in said if line.startswith("--target-prior ")]
    assert len(about) == (words is not None)
    assert all(line.startswith(f"--target-prior does not apply to {words}") for line in about)


def test_a_target_that_none_would_take_is_refused_as_in_training(capsys):
    assert main([*COMPARE, "--algorithms", "fixmatch", "cai", *SHARES]) == 2
    assert capsys.readouterr().err == "cadr: target_prior belongs to alignment 'given': set both of them, or neither.\n"


def test_a_target_of_a_recipe_goes_to_those_that_take_one(tmp_path):
    setting = (
        'data = "digits", protocol = "mcar", n = 40, algorithm = "cadr", target_prior = [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]'
    )
    (tmp_path / "paper.toml").write_text(f"[rows]\nfirst = {{ {setting} }}\n")
    algorithms, said = configs_of(["compare", f"{tmp_path}/paper.toml:first", "--seeds", "1"])
    assert algorithms["fixmatch"].target_prior == ()
    assert sum(algorithms["cadr"].target_prior) == 11
    assert said == []  # a recipe's settings are of its own method; nobody gave them to the others


def test_a_recipe_is_compared_with_each_algorithm_taking_what_it_has(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    setting = 'data = "digits", protocol = "mcar", n = 40, algorithm = "cai", beta = 0.3, threshold = 0.9'
    (tmp_path / "paper.toml").write_text(f"[rows]\nfirst = {{ {setting} }}\n")
    assert main(["compare", "paper.toml:first", *TINY, "--algorithms", "fixmatch", "cap_cai", "--seeds", "1"]) == 0
    folder = tmp_path / "runs" / "compare-first"
    options = {path.name: json.loads((path / "result.json").read_text())["options"] for path in folder.iterdir()}
    assert options == {"fixmatch-seed1": {"threshold": 0.9}, "cap_cai-seed1": {"beta": 0.3, "threshold": 0.9}}


def test_without_a_test_set_there_is_nothing_to_compare(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", x=np.arange(40.0, dtype=np.float32).reshape(20, 2), y=np.array([0, 1] * 9 + [-1, -1]))
    assert main(["compare", "mine.npz", *TINY, "--seeds", "1", "--validation", "0"]) == 2
    assert "no test set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--n-max", "5000"], "cadr: class 0 has "),
        (["--batch", str(2**19), "--steps", str(2**24)], "cadr: there is not enough memory"),  # a table of 64 TiB
    ],
)
def test_an_error_in_a_process_is_the_same_sentence(tmp_path, capfd, flags, sentence):
    arguments = ["compare", "digits", "--protocol", "longtail", *TINY, "--out", str(tmp_path), *flags]
    assert main([*arguments, "--processes", "2"]) == 2
    error = capfd.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1


def test_a_stopped_comparison_leaves_no_process_behind(tmp_path):
    command = [sys.executable, "-m", "cadr", *COMPARE, "--seeds", "2", "--processes", "2", "--out", "all"]
    command[command.index("--steps") + 1] = "100000"
    process = subprocess.Popen([*command, "--log-every", "1"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until(lambda: list(tmp_path.glob("all/*/metrics.jsonl")))
    os.kill(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED
    assert "The same command continues." in error
    assert "Traceback" not in error
    locks = list(tmp_path.glob("all/*/.lock"))
    assert locks
    for lock in locks:  # nobody trains there any more
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_demonstration_ends_in_a_table_and_a_sentence(capsys):
    assert main(["demo", "--seeds", "1", "--steps", "4"]) == 0
    text = capsys.readouterr().out
    assert "143 keep their label, by class 0 to 9: 50 33 21 14 9 6 4 3 2 1" in text
    assert [line.split()[0] for line in text.splitlines() if re.match(r"(FixMatch|CAP|CAI|CADR) +\d", line)] == [
        *("FixMatch", "CAP", "CAI", "CADR")
    ]
    assert "Highest accuracy in one seed" in text
    assert "After 4 steps, one seed" in text


def test_a_comparison_on_few_labels_says_what_a_label_weighs(tmp_path, capsys):
    labels = np.array([0, 1] * 10 + [-1] * 20)
    np.savez(tmp_path / "mine.npz", x=np.arange(80.0, dtype=np.float32).reshape(40, 2), y=labels)
    assert main(["compare", str(tmp_path / "mine.npz"), *TINY, "--seeds", "1", "--out", str(tmp_path / "runs")]) == 0
    text = capsys.readouterr().out
    assert "All are evaluated on 4 held-out labels, each worth 25.0 points. Held-out labels are as biased" in text


def test_own_data_are_not_trained_on_for_as_long_as_a_benchmark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", x=np.arange(40.0, dtype=np.float32).reshape(20, 2), y=np.array([0, 1] * 9 + [-1, -1]))
    parser = Parser()
    subparsers = parser.add_subparsers()
    compare.add(subparsers)
    arguments = ["compare", "mine.npz", "--seeds", "1", "--lr", "0.2"]
    configs = [planned.config for _, planned in compare.read_plans(parser.parse_args(arguments), Opened())]
    assert {config.training.steps for config in configs} == {500}
    assert {config.optimiser.lr for config in configs} == {0.2}


def test_methods_that_take_class_shares_are_told_those_diagnosed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = np.arange(200) % 10 // 9
    x = (np.random.default_rng(0).normal(size=(200, 3)) + 4 * truth[:, None]).astype(np.float32)
    np.savez("mine.npz", x=x, y=np.where(np.arange(200) < 80, truth, -1))
    parser = Parser()
    compare.add(parser.add_subparsers())
    arguments = ["compare", "mine.npz", "--seeds", "1", "--algorithms", "fixmatch", "cap", "cai", "cadr"]
    plans = dict(compare.read_plans(parser.parse_args(arguments), Opened()))
    target = plans["cadr"].target
    assert target is not None
    (said, *_) = target.sentences()
    assert said.startswith("The target is the class prior that cadr diagnose estimates")
    assert plans["cap"].target is target
    found = {name: planned.config.algorithm for name, planned in plans.items()}
    assert found["cadr"].target_prior == found["cap"].target_prior == pytest.approx((0.9, 0.1), abs=0.05)
    assert found["fixmatch"].target_prior == ()
    given = [*arguments[:5], "cap", "cadr", "--target-prior", "1", "1"]
    plans = dict(compare.read_plans(parser.parse_args(given), Opened()))
    assert {planned.target for planned in plans.values()} == {None}
    assert plans["cadr"].config.algorithm.target_prior == (1.0, 1.0)


@pytest.mark.parametrize(
    ("data", "flags", "names"),
    [
        ("mine.npz", [], compare.ON_FEATURES),  # simple methods and the default, all in seconds
        ("mine.npz", ["--steps", "5"], compare.ON_PICTURES),
        ("mine.npz", ["--algorithms", "cap", "logistic"], ("cap", "logistic")),
        ("digits", ["--protocol", "mcar", "--n", "40"], compare.ALGORITHMS),
    ],
)
def test_who_is_compared_where_nobody_says(data, flags, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    np.savez("mine.npz", x=x, y=np.where(np.arange(60) < 30, np.arange(60) % 2, -1))
    parser = Parser()
    compare.add(parser.add_subparsers())
    arguments = ["compare", data, "--seeds", "1", *flags]
    assert [name for name, _ in compare.read_plans(parser.parse_args(arguments), Opened())] == list(names)


def test_simple_methods_and_the_default_are_judged_on_the_same_labels(tmp_path, capsys):
    random = np.random.default_rng(0)
    truth = np.arange(90) % 2
    x = (random.normal(size=(90, 3)) + 4 * truth[:, None]).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=np.where(np.arange(90) < 30, truth, -1))
    assert main(["compare", str(tmp_path / "mine.npz"), "--seeds", "1", "--out", str(tmp_path / "runs")]) == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines() if re.match(r"\w+ +\d", line)] == list(compare.ON_FEATURES)
    assert "All are evaluated on 30 labels" in text
    network = ["--algorithms", "logistic", "cadr", "--seeds", "1"]
    assert main(["compare", str(tmp_path / "mine.npz"), *network, "--out", str(tmp_path / "both")]) == 0
    text = capsys.readouterr().out
    assert "All are evaluated" not in text
    assert re.search(
        r"Not evaluated on the same labels: logistic on 30 labels, each left out in its turn, cadr on \d held-out", text
    )
