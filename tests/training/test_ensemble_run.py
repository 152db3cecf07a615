"""A run of the ensemble as a folder: what it holds, that every command reads it, and what is chosen when."""

import csv
import json

import numpy as np
import pytest
import torch

from cadr.cli.main import main
from cadr.config import Config, name_of
from cadr.data import open_data
from cadr.errors import ConfigError, DataError
from cadr.inference.evaluation import evaluate_run
from cadr.inference.predictor import Predictor
from cadr.training import result, train
from cadr.training.ensemble_run import SavedEnsemble
from cadr.training.plan import plan
from tests import samples
from tests.training import tiny

TABLE = ["--label-column", "species"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("own")
    samples.lay_out(path)
    return path


@pytest.fixture(scope="module")
def run(folder):
    out = folder / "run"
    assert main(["train", str(folder / "table.csv"), *TABLE, "--out", str(out)]) == 0
    return out


def _predictions(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_is_learned_by_the_ensemble_and_a_line_says_so(folder, capsys):
    assert main(["train", str(folder / "table.csv"), *TABLE, "--out", str(folder / "said"), "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Chosen by the data, which are features: --algorithm ensemble")
    assert "each left out in its turn" in said
    assert "95 % interval" in said


def test_every_command_reads_the_run(run, folder, tmp_path, capsys):
    table = str(folder / "table.csv")
    assert main(["predict", str(run), table, "--out", str(tmp_path / "p.csv")]) == 0
    found = [row["predicted"] for row in _predictions(tmp_path / "p.csv")]
    right = np.array(found) == np.array(samples._NAMES)[np.arange(90) % 3]
    assert right.mean() > 0.97  # the clouds are four deviations apart
    assert main(["evaluate", str(run)]) == 0
    assert "37 labelled rows, each predicted by a fit without its label" in capsys.readouterr().out
    assert main(["report", str(run), "--out", str(tmp_path / "r.html"), "--to-label", str(tmp_path / "l.csv")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "Weights of the learners" in page
    assert "Pseudo-label" not in page  # there are none
    assert len(_predictions(tmp_path / "l.csv")) == 53


def test_the_judgement_spends_no_label(run):
    found = evaluate_run(run)
    assert (found["on"], found["examples"]) == ("cross_fitted", 37)
    assert found["accuracy"] == result(run)["last"]
    assert not (run / "validation.json").exists()


def test_held_out_probabilities_did_not_see_the_label(folder):
    """With labels of chance they are right as often as chance is, although the fit itself repeats its labels."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(150, 4)).astype(np.float32), np.full(150, -1)
    y[:90] = random.integers(0, 3, 90)
    np.savez(folder / "chance.npz", x=x, y=y)
    records = list(train(plan({"data": str(folder / "chance.npz"), "device": "cpu"}).config, folder / "chance"))
    judged = next(record for record in records if record["kind"] == "evaluation")
    assert judged["accuracy"] < 50


def test_nothing_in_the_folder_runs_code(run):
    for part in (run / "checkpoint").glob("*.pt"):
        assert all(isinstance(value, torch.Tensor) for value in torch.load(part, weights_only=True).values())
    assert {path.suffix for path in run.rglob("*") if path.is_file()} <= {".json", ".jsonl", ".toml", ".pt", ""}


def test_the_stored_module_predicts_what_was_fitted(run, folder):
    pool = open_data(str(folder / "table.csv"), label_column="species")
    labels = pool.labels[pool.labels >= 0]
    fitted = SavedEnsemble.of(tiny.tensors(run), run)
    assert fitted.held_out.shape == (37, 3)
    np.testing.assert_array_equal(fitted.labelled, np.flatnonzero(pool.labels >= 0))
    predictor = Predictor.load(run, device="cpu")
    found = predictor.probabilities(pool.examples[fitted.labelled]).argmax(1).numpy()
    assert (found == labels).mean() > 0.95
    again = predictor.probabilities(pool.examples[:1]).numpy()
    np.testing.assert_allclose(again, predictor.probabilities(pool.examples)[:1].numpy(), atol=1e-6)


def test_the_same_command_leaves_a_finished_run_alone(run, folder, capsys):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert main(["train", str(folder / "table.csv"), *TABLE, "--out", str(run)]) == 0
    assert "finished already" in capsys.readouterr().out
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_what_was_stopped_starts_again(run, folder, tmp_path):
    config = plan({"data": str(folder / "table.csv"), "label_column": "species"}).config
    records = train(config, tmp_path / "stopped")
    while next(records)["kind"] != "fit":
        pass
    records.close()
    assert not (tmp_path / "stopped" / "checkpoint").exists()
    list(train(config, tmp_path / "stopped"))
    tiny.assert_same(run, tmp_path / "stopped")


def test_config_names_what_concerns_an_ensemble_alone(run):
    config = Config.read(run / "config.toml")
    assert name_of(config.algorithm) == "ensemble"
    assert not {"steps", "lr", "batch", "model", "views", "validation"} & config.to_dict().keys()
    assert Config.from_toml(config.to_toml()) == config


@pytest.mark.parametrize(
    ("settings", "algorithm", "said"),
    [
        ({}, "ensemble", "which are features"),
        ({"algorithm": "fixmatch"}, "fixmatch", ""),
        ({"steps": 20}, "cap_cai", "--steps is a network's"),
        ({"model": "mlp"}, "cap_cai", "--model is a network's"),
        ({"beta": 0.2}, "cap_cai", "--beta is a network's"),
        ({"propensity": "class"}, "cadr", "--propensity is a network's"),  # which CAP + CAI has not
        ({"target_prior": (0.3, 0.3, 0.4)}, "ensemble", "which are features"),
        ({"algorithm": "forest"}, "forest", ""),
    ],
)
def test_who_learns_features(folder, settings, algorithm, said):
    planned = plan({"data": str(folder / "table.csv"), "label_column": "species", **settings})
    assert name_of(planned.config.algorithm) == algorithm
    assert said in planned.why
    assert bool(planned.why) == bool(said)


def test_pictures_take_a_network(folder):
    planned = plan({"data": str(folder / "photos"), "labels": str(folder / "labels.csv")})
    assert name_of(planned.config.algorithm) == "cap_cai"
    words = " ".join(planned.sentences())
    assert "which are pictures: --algorithm cap_cai" in words
    assert "These pictures are learned from nothing." in words
    assert "--features" in words
    assert planned.diagnosis is not None
    assert f"finds {100 * planned.diagnosis.balanced_accuracy:.0f} % of labels" in words
    fixed = plan({"data": str(folder / "photos"), "labels": str(folder / "labels.csv"), "propensity": "class"})
    assert name_of(fixed.config.algorithm) == "cadr"
    with pytest.raises(ConfigError, match=r"learns from features.*--features"):
        plan({"data": str(folder / "photos"), "labels": str(folder / "labels.csv"), "algorithm": "ensemble"})


def test_what_only_a_network_has_is_refused(folder):
    with pytest.raises(ConfigError, match="trains no network, so it has no steps"):
        plan({"data": str(folder / "table.csv"), "label_column": "species", "algorithm": "ensemble", "steps": 3})
    with pytest.raises(ConfigError, match="trains no network, so none can be given"):
        plan(
            {"data": str(folder / "table.csv"), "label_column": "species", "algorithm": "ensemble"},
            model=torch.nn.Linear(4, 3),
        )


def test_a_run_from_before_goes_on_as_what_it_is(folder, tmp_path):
    first = plan({"data": str(folder / "table.csv"), "label_column": "species", "steps": 20, "batch": 4}).config
    list(train(first, tmp_path / "run"))
    again = plan({"data": str(folder / "table.csv"), "label_column": "species"}, out=tmp_path / "run").config
    assert (name_of(again.algorithm), again.training.steps) == ("cap_cai", 20)


def test_given_shares_are_those_of_the_predictions(folder, tmp_path):
    settings = {"data": str(folder / "table.csv"), "label_column": "species", "target_prior": (0.2, 0.3, 0.5)}
    list(train(plan(settings).config, tmp_path / "run"))
    found = json.loads((tmp_path / "run" / "result.json").read_text())
    order = open_data(str(folder / "table.csv"), label_column="species").counts
    left = np.maximum(np.array([0.2, 0.3, 0.5]) * 90 - order, 0.5)
    np.testing.assert_allclose(found["shares"], left / left.sum(), atol=1e-5)


def test_changed_data_are_not_judged(run, folder, tmp_path):
    table = tmp_path / "table.csv"
    lines = (folder / "table.csv").read_text().splitlines()
    table.write_text("\n".join(lines) + "\n")
    out = tmp_path / "run"
    list(train(plan({"data": str(table), "label_column": "species"}).config, out))
    first = next(i for i, line in enumerate(lines) if line.endswith(",owl"))
    lines[first] = lines[first].replace("owl", "wren")
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="have changed"):
        evaluate_run(out)
