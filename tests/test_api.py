"""The Python door: whatever people hold in memory, trained on, asked, looked at and kept."""

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import nn

import cadr
from cadr.cli.main import main
from cadr.errors import CadrWarning, ConfigError, DataError
from tests.training import tiny

pytestmark = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")  # of runs as short as these
TINY: dict[str, Any] = {"steps": 40, "batch": 8, "seed": 5, "device": "cpu"}
FLAGS = ["--steps", "40", "--batch", "8", "--seed", "5", "--device", "cpu"]


def clouds(seed=0):
    random = np.random.default_rng(seed)
    truth = random.choice(3, 300, p=[0.2, 0.3, 0.5])
    x = (random.normal(size=(300, 4)) + 4 * np.eye(3, 4)[truth]).astype(np.float32)
    return x, np.where(random.random(300) < np.array([0.6, 0.3, 0.1])[truth], truth, -1), truth


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Words, gaps, a date, and text labels: as a CSV, and as pandas reads it."""
    x, y, truth = clouds()
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame.loc[frame.index % 9 == 0, "a"] = np.nan
    frame["place"] = np.array(["wood", "field", None])[(truth + frame.index) % 3]
    frame["day"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.random.default_rng(1).integers(0, 99, 300), "D")
    frame["ringed"] = truth == 1
    frame["species"] = np.where(y >= 0, np.array(["robin", "wren", "owl"])[y], "")
    path = tmp_path_factory.mktemp("api") / "birds.csv"
    frame.to_csv(path, index=False)
    return path, frame


@pytest.fixture(scope="module")
def run(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CadrWarning)
        return cadr.train(table[1], label_column="species", quiet=True, **TINY)


def test_a_frame_is_the_table_that_it_would_be_in_a_file(table, run, tmp_path):
    path, frame = table
    assert main(["train", str(path), "--label-column", "species", *FLAGS, "--out", str(tmp_path / "shell")]) == 0
    ours, theirs = tiny.tensors(run.path), tiny.tensors(tmp_path / "shell")
    assert all(ours[name].equal(theirs[name]) for name in theirs)
    python = cadr.train(path, label_column="species", quiet=True, out=tmp_path / "python", **TINY)
    tiny.assert_same(tmp_path / "shell", python.path)
    np.testing.assert_array_equal(run.predict_proba(frame), python.predict_proba(path))
    apart = cadr.train(frame.drop(columns="species"), frame["species"], quiet=True, **TINY)
    np.testing.assert_array_equal(apart.predict_proba(frame), run.predict_proba(frame))


def test_a_run_predicts_what_it_was_taught_in_the_words_it_was_taught_in(table, run):
    _, frame = table
    known = frame["species"] != ""
    assert (run.predict(frame)[known] == frame["species"][known]).mean() > 0.9
    shuffled = frame[["species", "ringed", "place", "d", "c", "b", "a", "day"]].astype({"place": "category"})
    np.testing.assert_array_equal(run.predict_proba(shuffled), run.predict_proba(frame))
    np.testing.assert_allclose(run.predict_proba(frame).sum(1), 1.0, atol=1e-6)
    with pytest.raises(DataError, match="no column 'b', which the model was trained with"):
        run.predict(frame.drop(columns="b"))


def test_arrays(tmp_path):
    x, y, truth = clouds()
    run = cadr.train(x, y, quiet=True, out=tmp_path / "run", **TINY)
    assert run.predict(x).dtype == y.dtype
    assert (run.predict(x) == truth).mean() > 0.8
    np.testing.assert_array_equal(cadr.train((x, y), quiet=True, **TINY).predict_proba(x), run.predict_proba(x))
    again = cadr.load(tmp_path / "run", x, y)
    np.testing.assert_array_equal(again.predict_proba(x), run.predict_proba(x))
    assert again.evaluate()["confusion"] == run.evaluate()["confusion"]
    np.testing.assert_array_equal(cadr.load(tmp_path / "run").predict(x), run.predict(x))
    odd = cadr.train(x, np.where(y == 2, -1, 10.0 * y + 5), quiet=True, **TINY)  # 5.0 and 15.0, −5.0 is no label
    assert set(odd.predict(x)) <= {-5.0, 5.0, 15.0}


def test_a_network_of_ones_own(tmp_path):
    x, y, _ = clouds()
    run = cadr.train(x, y, model=nn.Linear(4, 3), quiet=True, out=tmp_path / "run", **TINY)
    assert run.predict_proba(x).shape == (300, 3)
    assert run.evaluate()["examples"] > 0
    assert cadr.train(x, y, model="mlp", hidden=(8,), quiet=True, **TINY).config.model.hidden == (8,)


def test_everything_that_the_shell_can_do(table, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.evaluate()["on"] == "validation"
    assert run.report(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert {path.name for path in run.export(tmp_path / "model")} == {
        *("model.safetensors", "model.json", "model.pt2", "MODEL_CARD.md")
    }
    assert run.diagnosis.labelled == (table[1]["species"] != "").sum()
    kept = run.save(tmp_path / "kept")
    assert kept.result == run.result
    with pytest.raises(ConfigError, match="is there already"):
        run.save(tmp_path / "kept")
    assert any("held-out" in line for line in run.summary())
    assert run.records[-1]["kind"] == "evaluation"


def test_a_run_in_a_folder_goes_on_and_is_left_alone(tmp_path, capsys):
    x, y, _ = clouds()
    run = cadr.train(x, y, out=tmp_path / "run", **TINY)
    said = capsys.readouterr().out
    assert "Chosen by the data: --model mlp" in said
    assert "step 40 of 40" in said
    assert run.summary()[0] in said
    cadr.train(x, y, out=tmp_path / "run", quiet=True, **TINY)
    assert capsys.readouterr().out == ""
    with pytest.raises(ConfigError, match="steps \\(was 40, now 50\\)"):
        cadr.train(x, y, out=tmp_path / "run", quiet=True, **{**TINY, "steps": 50})


def test_a_run_without_a_folder_leaves_nothing_behind():
    x, y, _ = clouds()
    run = cadr.train(x, y, quiet=True, **TINY)
    path = run.path
    assert path.is_dir()
    del run
    assert not path.exists()


def test_diagnoses(table):
    x, y, _ = clouds()
    path, frame = table
    plain = cadr.diagnose(x, y)
    assert plain.labelled == (y >= 0).sum()
    assert dataclasses.replace(cadr.diagnose((x, y)), name="") == dataclasses.replace(plain, name="")
    assert cadr.diagnose(cadr.data.from_arrays(x, y)).classes == plain.classes
    by_name = [cadr.diagnose(data, label_column="species") for data in (frame, path)]
    assert by_name[0].classes == by_name[1].classes
    assert cadr.diagnose(x, y, seed=1).classes != plain.classes


def test_warnings_are_heard_even_when_it_is_quiet(monkeypatch):
    x, y, _ = clouds()
    monkeypatch.setattr("cadr.training.watchdogs.Watch.observe", lambda *_: ["Nobody predicts class 3."])
    with pytest.warns(CadrWarning, match="Nobody predicts class 3"):
        cadr.train(x, y, quiet=True, **TINY)


@pytest.mark.parametrize(
    ("data", "settings", "sentence"),
    [
        (np.zeros((4, 2), np.float32), {}, "ndarray has no labels; give X and y, a DataFrame"),
        ("digits", {"y": [0, 1]}, "y belongs to X, but the data are str"),
        ("nothing.csv", {}, "nothing.csv is neither a file or folder nor a benchmark"),
        (pd.DataFrame({"a": [1.0, 2.0]}), {}, "no column 'label'"),
        (pd.DataFrame({"a": [1.0, 2.0]}), {"y": [1, 0, 1]}, "inconsistent numbers of samples"),
        (pd.DataFrame({"a": [1j, 2j], "label": [0, 1]}), {}, "column 'a' is complex128; features must be numbers"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "a", "label"]), {}, "column 'a' is there twice"),
        (clouds()[:2], {"stepps": 3}, "no field 'stepps': did you mean steps?"),
    ],
)
def test_mistakes_cost_a_sentence(data, settings, sentence):
    with pytest.raises((DataError, ConfigError, ValueError), match=re.escape(sentence)):
        cadr.train(data, quiet=True, **settings)


def test_what_a_notebook_shows(table, run):
    pool = cadr.open_data(table[0], label_column="species")
    assert repr(pool).startswith("Pool(birds: 300 rows of ")
    assert len(repr(pool)) < 200
    assert pool._repr_html_().count("<tr>") == 4
    assert repr(run).startswith("Run('/")
    assert "cap_cai on DataFrame, 40 steps, accuracy " in repr(run)
    assert "<td>robin</td>" in run._repr_html_()
    diagnosis = cadr.diagnose(table[1], label_column="species")
    assert repr(diagnosis) == f"Diagnosis(DataFrame: {diagnosis.verdict})"
    assert diagnosis._repr_html_().count("<tr>") == 4
    evil = dataclasses.replace(pool, class_names=("<b>", "c", "d"), name="<script>")
    assert "<script>" not in evil._repr_html_()
    assert "<td>&lt;b&gt;</td>" in evil._repr_html_()
