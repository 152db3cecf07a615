"""`--continue-from RUN`: the weights, the settings and the held-out labels of the run before, and what is refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

from cadr.cli.main import main
from cadr.config import Config
from cadr.data.pool import Pool
from cadr.errors import CadrError
from cadr.inference.predictor import Predictor
from cadr.models import MLP
from cadr.training import train
from cadr.training.prepare import build_model
from cadr.training.warm_start import begin_with, next_run
from tests.training import tiny

SETTINGS = ["--algorithm", "cadr", "--steps", "40", "--batch", "8", "--ratio", "2", "--model", "mlp", "--hidden", "16"]
FLAGS = [*SETTINGS, "--device", "cpu"]


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A run with a network, and one with an ensemble, on the same table."""
    folder = tmp_path_factory.mktemp("before")
    data, _ = table(folder)
    assert main(["train", data, "--label-column", "kind", *FLAGS, "--out", str(folder / "run")]) == 0
    assert main(["train", data, "--label-column", "kind", "--out", str(folder / "instant")]) == 0
    return folder


def table(folder, more=0, shuffled=False):
    """Two columns and three kinds; 30 labels and so many more."""
    random = np.random.default_rng(0)
    truth = np.arange(120) % 3
    x = 3 * np.array([[0, 0], [1, 0], [0, 1]])[truth] + random.normal(size=(120, 2))
    rows = [
        f"{a:.5f},{b:.5f},{'abc'[c] if i < 30 + more else ''}"
        for i, ((a, b), c) in enumerate(zip(x, truth, strict=True))
    ]
    if shuffled:
        rows = random.permutation(rows).tolist()
    path = folder / "table.csv"
    path.write_text("\n".join(["x,y,kind", *rows]) + "\n", encoding="utf-8")
    return str(path), rows


def held(run):
    return json.loads((run / "validation.json").read_text())["rows"]


def config_of(run):
    return Config.read(run / "config.toml")


def warm(run, **changes):
    return tiny.replace(tiny.config(**changes), continue_from=str(run))


def test_it_begins_with_the_averaged_weights(tmp_path):
    tiny.finish(tiny.config(), tmp_path / "run")
    pool, config = tiny.pool(), warm(tmp_path / "run")
    model = build_model(config, 3, (4,))
    begin_with(model, config, pool)
    predictor = Predictor.load(tmp_path / "run", device="cpu")
    theirs = dict(predictor.model.named_parameters())
    assert theirs
    for name, ours in model.named_parameters():
        assert ours.equal(theirs[name]), name


def test_the_first_steps_are_better_than_from_nothing(tmp_path):
    tiny.finish(tiny.config(), tmp_path / "run")
    short = {"steps": 1, "evaluations": 1}
    cold, hot = (
        tiny.finish(c, tmp_path / name)["result"]["last"]
        for name, c in {"cold": tiny.config(**short), "hot": warm(tmp_path / "run", **short)}.items()
    )
    assert hot > cold + 20


def test_a_class_that_is_new_takes_its_place(tmp_path):
    """Names decide whose weights are whose, not places."""
    tiny.finish(tiny.config(), tmp_path / "run")
    pool = tiny.pool()
    new = {0: 0, 1: 2, 2: 3, -1: -1}  # ant, bat, bee, cat
    labels = np.array([new[int(c)] for c in pool.labels])
    labels[20] = 1
    more = dataclasses.replace(
        pool,
        labels=labels,
        class_names=("ant", "bat", "bee", "cat"),
        hidden_labels=None,
        test_examples=None,
        test_labels=None,
    )
    config = warm(tmp_path / "run")
    model, fresh = (build_model(config, 4, (4,)) for _ in range(2))
    begin_with(model, config, more)
    before = Predictor.load(tmp_path / "run", device="cpu").model
    x = torch.randn(5, 4)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(x)[:, [0, 2, 3]], before(x))
    *_, (_, ours) = [(n, p) for n, p in model.named_parameters() if p.ndim == 2]
    *_, (_, theirs) = [(n, p) for n, p in fresh.named_parameters() if p.ndim == 2]
    assert ours[1].equal(theirs[1])  # as it began


def test_a_killed_one_goes_on_bit_for_bit_without_the_run_before(tmp_path):
    tiny.finish(tiny.config(), tmp_path / "run")
    config = warm(tmp_path / "run", steps=30)
    tiny.finish(config, tmp_path / "whole")
    records = train(config, tmp_path / "parts", pool=tiny.pool())
    for record in records:
        if record["step"] >= 10:
            break
    records.close()
    shutil.rmtree(tmp_path / "run")
    tiny.finish(config, tmp_path / "parts")
    tiny.assert_same(tmp_path / "whole", tmp_path / "parts")


def test_settings_and_held_out_labels_are_those_of_the_run_before(before, tmp_path, capsys):
    shutil.copytree(before / "run", tmp_path / "run")
    data, _ = table(tmp_path, more=20)
    command = ["train", data, "--continue-from", str(tmp_path / "run"), "--steps", "20"]
    assert main(command) == 0
    new, old = config_of(tmp_path / "run-2"), config_of(before / "run")
    assert (new.training.steps, new.training.continue_from) == (20, str(tmp_path / "run"))
    assert (
        dataclasses.replace(
            new, data=old.data, training=dataclasses.replace(new.training, steps=40, continue_from=None)
        )
        == old
    )
    assert held(tmp_path / "run-2") == held(tmp_path / "run")
    capsys.readouterr()
    assert main([*command, "--out", str(tmp_path / "run-2")]) == 0
    assert "is finished already" in capsys.readouterr().out


def test_held_out_rows_are_known_again_among_others(before, tmp_path):
    shutil.copytree(before / "run", tmp_path / "run")
    data, rows = table(tmp_path, more=20, shuffled=True)
    lines = table(before)[1]
    assert main(["train", data, "--continue-from", str(tmp_path / "run")]) == 0
    ours = {rows[i] for i in held(tmp_path / "run-2")}
    assert ours == {lines[i] for i in held(before / "run")}
    assert len(ours) == 6


def test_an_ensemble_is_fitted_anew_to_all_labels(before, tmp_path):
    shutil.copytree(before / "instant", tmp_path / "run-3")
    data, _ = table(tmp_path, more=20)
    assert main(["train", data, "--continue-from", str(tmp_path / "run-3")]) == 0
    assert main(["train", data, "--label-column", "kind", "--out", str(tmp_path / "afresh")]) == 0
    new = config_of(tmp_path / "run-4")
    assert new.is_instant
    assert new.source.label_column == "kind"
    tiny_result = [json.loads((tmp_path / name / "result.json").read_text())["last"] for name in ("run-4", "afresh")]
    assert tiny_result[0] == tiny_result[1]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--continue-from", "nowhere"], "nowhere is not a run: there is no such folder"),
        (["--continue-from", "{before}"], "is not a run: it holds no config.toml"),
        (["--continue-from", "{before}/run", "--model", "mlp", "--hidden", "8"], "1.weight does not fit"),
        (["--continue-from", "{before}/run", "--algorithm", "ensemble"], "is a network, from which an ensemble cannot"),
        (["--continue-from", "{before}/instant", "--algorithm", "cadr"], "is an ensemble, from which a network cannot"),
    ],
)  # fmt: skip
def test_what_cannot_be_continued_is_said(before, tmp_path, capsys, monkeypatch, flags, words):
    monkeypatch.chdir(tmp_path)
    data, _ = table(tmp_path)
    flags = [flag.format(before=before) for flag in flags]
    assert main(["train", data, "--label-column", "kind", *flags, "--out", "new"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_other_rows_have_nothing_that_is_held_out(before, tmp_path, capsys):
    path = tmp_path / "other.csv"
    path.write_text(
        "x,y,kind\n" + "".join(f"{i * i % 61},{i % 7},{'abc'[i % 3] if i < 30 else ''}\n" for i in range(60))
    )
    command = ["train", str(path), "--continue-from", str(before / "run"), "--out", str(tmp_path / "new")]
    assert main(command) == 2
    assert "has none of the labels that" in capsys.readouterr().err
    assert main([*command, "--validation", "0"]) == 0
    assert not (tmp_path / "new" / "validation.json").exists()


def test_other_classes_and_an_unfinished_run(tmp_path):
    tiny.finish(tiny.config(), tmp_path / "run")
    pool = dataclasses.replace(tiny.pool(), class_names=("x", "y", "z"))
    with pytest.raises(CadrError, match="knows none of the classes"):
        list(train(warm(tmp_path / "run"), tmp_path / "new", pool=pool))
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    shutil.rmtree(tmp_path / "run" / "checkpoint.previous", ignore_errors=True)
    with pytest.raises(CadrError, match="no checkpoint yet"):
        list(train(warm(tmp_path / "run"), tmp_path / "new", pool=tiny.pool()))
    assert not (tmp_path / "new").exists()


def test_pictures_are_not_features(tmp_path):
    tiny.finish(tiny.config(), tmp_path / "run")
    pictures = np.zeros((40, 8, 8, 3), dtype=np.uint8)
    pool = Pool(pictures, np.array([0, 1, 2] * 5 + [-1] * 25), ("ant", "bee", "cat"), "squares")
    config = warm(tmp_path / "run")
    with pytest.raises(CadrError, match="has learned features, but squares holds image"):
        begin_with(MLP((4,)).build(3, (4,)), config, pool)


def test_names_of_runs_that_follow(tmp_path):
    assert next_run(tmp_path / "run").name == "run-2"
    (tmp_path / "run-2").mkdir()
    assert next_run(tmp_path / "run").name == "run-3"
    assert next_run(tmp_path / "run-2").name == "run-3"
    assert next_run(tmp_path / "of-2026").name == "of-2027"
