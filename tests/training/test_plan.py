"""The one place that decides a run: the same settings on the same data are the same run, whichever way they come."""

import numpy as np
import pytest
import torch
from torch import nn

import cadr
from cadr import CADRClassifier
from cadr.cli.main import main
from cadr.config import Config
from cadr.data import open_data
from cadr.errors import ConfigError, DataError
from cadr.training import train
from cadr.training.plan import Opened, plan
from tests.training import tiny

pytestmark = pytest.mark.filterwarnings("ignore::cadr.errors.CadrWarning")  # of runs as short as these

SETTINGS = {"steps": 40, "batch": 8, "seed": 5, "device": "cpu"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three clouds, the first class labelled far more often than the others: the shares have to be diagnosed."""
    path = tmp_path_factory.mktemp("plan") / "mine.npz"
    random = np.random.default_rng(0)
    truth = random.choice(3, 400, p=[0.2, 0.3, 0.5])
    x = (random.normal(size=(400, 5)) + 4 * np.eye(3, 5)[truth]).astype(np.float32)
    y = np.where(random.random(400) < np.array([0.6, 0.2, 0.1])[truth], truth, -1)
    np.savez(path, x=x, y=y)
    return path


@pytest.mark.parametrize("algorithm", ["cadr", "fixmatch", "ensemble"])
def test_shell_python_and_estimator_are_one_run(algorithm, data, tmp_path):
    settings = {**SETTINGS, "algorithm": algorithm} if algorithm != "ensemble" else {"algorithm": algorithm, "seed": 5}
    flags = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    assert main(["train", str(data), *flags, "--out", str(tmp_path / "shell")]) == 0
    stored = tiny.tensors(tmp_path / "shell")

    planned = plan({"data": str(data), **settings})
    list(train(planned.config, tmp_path / "config", planned.pool))
    python = cadr.train(data, out=tmp_path / "python", quiet=True, **settings)
    for run in (tmp_path / "config", python.path):
        tiny.assert_same(tmp_path / "shell", run)
    if algorithm == "cadr":
        assert planned.target is not None
        assert planned.config.algorithm.target_prior == tuple(planned.target.shares or ())

    with np.load(data) as arrays:
        x, y = arrays["x"], arrays["y"]
    in_memory = cadr.train(x, y, quiet=True, **settings)
    of_run = {name: settings[name] for name in ("steps", "batch") if name in settings}
    fitted = CADRClassifier(algorithm, validation=0.2, settings={"seed": 5}, device="cpu", **of_run).fit(x, y)
    for predictor in (in_memory._predictor, fitted._predictor):
        for name, value in predictor.model.state_dict().items():
            names = (f"{kind}.{name}" for kind in ("average", "buffer", "ensemble"))
            kept = next(stored[name] for name in names if name in stored)
            assert torch.equal(value, kept), name
    np.testing.assert_array_equal(in_memory.predict_proba(x), python.predict_proba(x))
    np.testing.assert_array_equal(fitted.predict_proba(x), python.predict_proba(x))


def test_a_plan_is_complete(data):
    """Nothing is left for training to choose, and what is written down is the same run again."""
    planned = plan({"data": str(data), **SETTINGS})
    assert planned.config.model is not None
    assert planned.config.views is not None
    again = plan(Config.from_toml(planned.config.to_toml()).to_dict(), recipe=True)
    assert again.config == planned.config
    benchmark = plan({"data": "digits", "protocol": "mcar", "n": 50}).config
    assert (benchmark.training.steps, benchmark.optimiser.lr) == (2**17, 0.03)  # as published
    assert benchmark.model is not None


def test_settings_of_what_the_data_choose_can_be_given(data, tmp_path):
    config = plan({"data": str(data), "hidden": (16,), "dropout": 0.3}).config
    assert (config.model.hidden, config.views.dropout) == ((16,), 0.3)
    with pytest.raises(ConfigError, match="no field 'flip'"):
        plan({"data": str(data), "flip": False})
    with pytest.raises(ConfigError, match="no field 'hiden'"):
        plan({"data": str(data), "hiden": (16,)}, Opened())
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert plan({"data": str(data)}, out=tmp_path).config == config  # a run goes on as what it was begun as


def test_data_are_opened_and_diagnosed_once(data, monkeypatch):
    opened = []

    def noted(spec, **how):
        opened.append(spec)
        return open_data(spec, **how)

    monkeypatch.setattr("cadr.training.plan.open_data", noted)
    shared = Opened()
    plans = [plan({"data": str(data), "algorithm": name}, shared) for name in ("cap", "cadr", "fixmatch")]
    assert len(opened) == 1
    assert plans[0].target is plans[1].target is not None
    assert plans[2].target is None
    plan({"data": "digits", "protocol": "mcar", "n": 50}, shared)
    assert len(opened) == 2


def test_a_network_of_ones_own_is_as_large_as_it_is(data):
    small, large = nn.Linear(5, 3), nn.Sequential(nn.Linear(5, 2**16), nn.Linear(2**16, 3))
    chosen = [plan({"data": str(data)}, model=model).config for model in (small, large)]
    assert [config.optimiser.lr for config in chosen] == [0.1, 0.03]
    assert [config.model for config in chosen] == [None, None]
    assert chosen[0].training.steps < chosen[1].training.steps


def test_complete_labels_are_most_likely_a_mistake():
    pool = tiny.pool()
    whole = type(pool)(pool.examples, np.arange(90) % 3, pool.class_names)
    with pytest.raises(DataError, match="no label is missing"):
        plan({"data": "X"}, whole)
    assert plan({"data": "X", "algorithm": "supervised"}, whole).pool is whole
    assert plan({"data": "X"}, whole, complete_labels=True).pool is whole
