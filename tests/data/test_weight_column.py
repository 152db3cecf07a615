"""`--weight-column`: in every kind of table it is read, no feature, and heeded; what is no weight is refused."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from cadr import api
from cadr.cli.main import main
from cadr.data import open_data
from cadr.diagnosis.weights import row_weights
from cadr.errors import DataError

WEIGHTS = np.random.default_rng(5).integers(1, 4, 120) / 2


def frame(weights=WEIGHTS):
    random = np.random.default_rng(0)
    truth = np.arange(120) % 3
    x = random.normal(size=(120, 3)) + 4 * np.eye(3)[truth]
    known = random.random(120) < np.array([0.7, 0.4, 0.3])[truth]
    kind = np.where(known, np.array(["ant", "bee", "cat"])[truth], "")
    return pd.DataFrame({"a": x[:, 0], "w": weights, "b": x[:, 1], "c": x[:, 2], "kind": kind})


@pytest.fixture
def table(tmp_path):
    frame().to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_it_is_read_and_is_no_feature(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    frame().to_csv(path, index=False) if ending == "csv" else frame().to_parquet(path)
    pool = open_data(path, label_column="kind", weight_column="w")
    np.testing.assert_array_equal(pool.weights, WEIGHTS)
    assert pool.feature_names == ("a", "b", "c")
    assert open_data(path, label_column="kind").weights is None


def test_through_every_door(table, tmp_path, capsys):
    flags = ["--label-column", "kind", "--weight-column", "w"]
    assert main(["diagnose", str(table), *flags, "--json"]) == 0
    shares = [c["share"] for c in json.loads(capsys.readouterr().out)["classes"]]
    ours = api.diagnose(frame(), label_column="kind", weight_column="w")
    assert shares == pytest.approx([c.share for c in ours.classes], abs=1e-3)
    assert shares != pytest.approx(
        [c.share for c in api.diagnose(frame().drop(columns="w"), label_column="kind").classes], abs=1e-3
    )
    assert main(["train", str(table), *flags, "--out", str(tmp_path / "run")]) == 0
    run = api.train(frame(), label_column="kind", weight_column="w", seed=1, quiet=True)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["prior"] == run.result["prior"]
    assert main(["predict", str(tmp_path / "run"), str(table), "--out", str(tmp_path / "p.csv")]) == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        assert "w" in next(csv.reader(file))  # kept beside the predictions


def test_in_the_weights_for_other_analyses(table):
    """With all weights alike nothing changes but their size; means are of the weighted population."""
    pool = open_data(table, label_column="kind", weight_column="w")
    weights = row_weights(pool, replicates=4)
    known = np.flatnonzero(weights.labelled)
    np.testing.assert_allclose(
        weights.weight[known], WEIGHTS[known] / weights.class_propensity[pool.labels[known]], rtol=1e-12
    )
    assert weights.mean(np.ones(120), np.ones(120)).value == pytest.approx(1.0)
    guess = np.arange(120.0)
    assert weights.mean(guess, guess).value == pytest.approx(np.average(guess, weights=WEIGHTS))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        *(("0", "column 'w' is 0; a weight must be above 0"), ("-1", "is -1; a weight"), ("x", "column 'w'")),
        *(("", "column 'w'"), ("nan", "column 'w'"), ("1e300", "not a finite number")),
    ],
)
def test_what_is_no_weight_is_refused(tmp_path, capsys, weight, words):
    path = tmp_path / "table.csv"
    frame(np.where(np.arange(120) == 7, weight, "1")).to_csv(path, index=False)
    assert main(["diagnose", str(path), "--label-column", "kind", "--weight-column", "w"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "line 9" in said
    assert said.count("\n") == 1


def test_a_column_that_is_not_there_or_data_without_columns(table, tmp_path):
    with pytest.raises(DataError, match="has no column 'v'"):
        open_data(table, label_column="kind", weight_column="v")
    with pytest.raises(DataError, match="cannot hold both the labels and the weights"):
        open_data(table, label_column="kind", weight_column="kind")
    np.savez(tmp_path / "x.npz", x=np.eye(4), y=np.array([0, 1, -1, -1]))
    with pytest.raises(DataError, match="--weight-column is for tables"):
        open_data(tmp_path / "x.npz", weight_column="w")
