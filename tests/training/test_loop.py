"""What a run says and leaves behind: records, result.json, and the honest absence of numbers where there are none."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics

import numpy as np
import pytest
import torch

from cadr.config import CHOICES, Config, Source, Training
from cadr.data.protocols import Longtail
from cadr.data.split import Split
from cadr.errors import ConfigError, DataError
from cadr.inference import evaluate_run
from cadr.inference.predictor import Predictor
from cadr.optim import SGD
from cadr.training import result, train
from cadr.training.record import evaluation_points, stopping_points
from tests.training import tiny

CONTRACT = {
    "dataset", "algorithm", "options", "gamma", "n_max", "gamma_unlabelled", "model", "steps", "seed", "split_sha256",
    "commit", "torch", "device", "seconds", "ms_per_step", "peak_memory_gib", "curve", "last", "mean_10", "median_10",
    "median_20", "best", "gm", "recall", "prior",
}  # fmt: skip


def digits(algorithm: str = "cadr") -> Config:
    training = Training(steps=40, batch=16, ratio=2, evaluations=4, device="cpu")
    return Config("digits", CHOICES["algorithm"][algorithm](), Longtail(n_max=20, gamma=20), training=training)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "digits"
    records = list(train(digits(), out))
    return out, records


def test_the_folder_holds_what_it_should(run):
    out, records = run
    assert {"config.toml", "split.json", "metrics.jsonl", "checkpoint", "result.json"} <= {
        p.name for p in out.iterdir()
    }
    assert not (out / "calibration.json").exists()  # a benchmark's test labels are not for that
    stored = Config.read(out / "config.toml")
    assert (stored.model, stored.views) == (CHOICES["model"]["convnet"](), CHOICES["views"]["image"]())
    assert Split.read(out / "split.json").counts == (20, 15, 11, 8, 6, 4, 3, 2, 2, 1)
    written = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert written == [record for record in records if record["kind"] not in ("start", "hint", "finished")]


def test_result_has_the_fields_of_the_contract(run):
    out, records = run
    content = result(out)
    assert set(content) == CONTRACT | {"evaluated_on"}
    assert records[-1]["result"] == content
    assert (content["dataset"], content["algorithm"], content["model"]) == ("digits", "cadr", "convnet")
    assert (content["gamma"], content["n_max"], content["gamma_unlabelled"]) == (20, 20, 1)
    assert content["options"] == {}
    assert content["split_sha256"] == Split.read(out / "split.json").sha256
    assert content["evaluated_on"] == "test"
    assert len(content["recall"]) == len(content["prior"]) == 10
    assert sum(content["prior"]) == pytest.approx(1.0, abs=1e-5)
    evaluations = [record for record in records if record["kind"] == "evaluation"]
    assert content["curve"] == [[record["step"], record["accuracy"]] for record in evaluations]
    assert content["last"] == evaluations[-1]["accuracy"]
    assert content["seconds"] > 0


def test_summary_names_are_honest(tmp_path):
    tiny.finish(tiny.config(steps=50, evaluations=25), tmp_path)
    content = result(tmp_path)
    values = [value for _, value in content["curve"]]
    assert len(values) == 25
    assert content["last"] == values[-1]
    assert content["best"] == max(values)
    assert content["mean_10"] == pytest.approx(statistics.fmean(values[-10:]), abs=1e-4)
    assert content["median_10"] == pytest.approx(statistics.median(values[-10:]), abs=1e-4)
    assert content["median_20"] == pytest.approx(statistics.median(values[-20:]), abs=1e-4)


def test_train_records_say_what_happened(run):
    _, records = run
    trained = [record for record in records if record["kind"] == "train"]
    assert sum(record["steps"] for record in trained) == 40
    for record in trained:
        assert record["loss"] == pytest.approx(sum(record["terms"].values()), rel=1e-4, abs=1e-6)
        assert set(record["terms"]) == {"supervised", "propensity", "unlabelled", "supplement"}
        assert sum(record["prior"]) == pytest.approx(1.0, abs=1e-5)
        assert sum(record["predicted"]) == pytest.approx(100.0, abs=1e-3)
        assert all(len(record[name]) == 10 for name in ("used", "precision", "coverage", "thresholds"))
        assert set(record["timing"]) == {"seconds", "steps_per_second", "images_per_second", "memory_gib"}
    last = trained[-1]
    assert last["lr"] == pytest.approx(0.03 * math.cos(7 * math.pi * 39 / (16 * 40)), rel=1e-5)


def test_evaluation_records_agree_with_their_confusion(run):
    _, records = run
    for record in [record for record in records if record["kind"] == "evaluation"]:
        counts = np.array(record["confusion"])
        assert counts.sum() == 530
        assert record["accuracy"] == pytest.approx(100 * np.trace(counts) / 530, abs=1e-4)
        assert record["recall"] == pytest.approx((100 * np.diag(counts) / counts.sum(1)).tolist(), abs=1e-4)


def test_evaluating_a_run_again_gives_its_last_numbers(run):
    out, records = run
    again = evaluate_run(out, device="cpu")
    evaluation = [record for record in records if record["kind"] == "evaluation"][-1]
    for name in ("step", "on", "accuracy", "gm", "recall", "confusion"):
        assert again[name] == evaluation[name]
    assert again["examples"] == 530
    assert len(again["class_names"]) == 10


def test_held_out_images_take_the_place_of_the_test_set(tmp_path):
    settings = dataclasses.replace(digits(), source=Source(held_out=100))
    records = list(train(settings, tmp_path))
    evaluations = [record for record in records if record["kind"] == "evaluation"]
    assert {record["on"] for record in evaluations} == {"held_out"}
    assert np.sum(evaluations[-1]["confusion"]) == 100
    assert result(tmp_path)["evaluated_on"] == "held_out"
    with pytest.raises(ConfigError, match="held_out needs a protocol"):
        list(train(dataclasses.replace(settings, protocol=None), tmp_path / "other"))


def test_a_split_file_takes_the_place_of_a_protocol(run, tmp_path):
    out, _ = run
    settings = dataclasses.replace(digits(), protocol=None, source=Source(split=str(out / "split.json")))
    *_, last = train(settings, tmp_path)
    for key in ("split_sha256", "gamma", "n_max", "gamma_unlabelled", "curve"):
        assert last["result"][key] == result(out)[key] is not None
    with pytest.raises(ConfigError, match="not both"):
        list(train(dataclasses.replace(digits(), source=settings.source), tmp_path / "other"))


def test_own_data_without_a_test_set_are_trained_and_say_so(tmp_path):
    records = list(train(tiny.config(), tmp_path, pool=tiny.pool(test=False)))
    assert "no test set: nothing will be evaluated" in records[0]["message"]
    assert not [record for record in records if record["kind"] == "evaluation"]
    content = result(tmp_path)
    assert content["curve"] == []
    assert content["last"] is content["median_10"] is content["recall"] is content["split_sha256"] is None
    with pytest.raises(DataError, match="no test set"):
        evaluate_run(tmp_path, pool=tiny.pool(test=False))


def test_truth_that_nobody_knows_is_not_reported(tmp_path):
    pool = dataclasses.replace(
        tiny.pool(), labels=np.where(np.arange(90) < 6, np.arange(90) % 3, -1), hidden_labels=None
    )
    records = [record for record in train(tiny.config(), tmp_path, pool=pool) if record["kind"] == "train"]
    # One label a class is known among the 90 rows: coverage is then 0, 50 or 100 % of two rows, or unknown.
    assert {value for record in records for value in record["coverage"]} <= {None, 0.0, 50.0, 100.0, 33.33333, 66.66667}


def test_a_class_without_labels_is_refused(tmp_path):
    pool = dataclasses.replace(tiny.pool(), labels=np.where(np.arange(90) % 3 == 2, -1, tiny.pool().labels))
    with pytest.raises(DataError, match="No example of class cat is labelled; take another seed"):
        list(train(tiny.config(), tmp_path, pool=pool))
    with pytest.raises(DataError, match="No example of class cat is labelled; label one"):
        list(train(tiny.config(), tmp_path, pool=dataclasses.replace(pool, hidden_labels=None)))


def test_views_must_fit_the_data(tmp_path):
    settings = dataclasses.replace(tiny.config(), views=CHOICES["views"]["image"]())
    with pytest.raises(ConfigError, match="views must be 'features'"):
        list(train(settings, tmp_path, pool=tiny.pool()))


def test_a_model_of_ones_own_is_trained(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    settings = dataclasses.replace(tiny.config(), model=None)
    *_, last = train(settings, tmp_path, pool=tiny.pool(), model=model)
    assert last["result"]["model"] == "Sequential"
    assert last["result"]["last"] > 70
    again = evaluate_run(tmp_path, pool=tiny.pool(), model=model, device="cpu")
    assert again["accuracy"] == last["result"]["last"]


def test_an_unusable_device_is_named(tmp_path):
    with pytest.raises(ConfigError, match="device 'quantum' cannot be used"):
        list(train(tiny.config(device="quantum"), tmp_path, pool=tiny.pool()))


@pytest.mark.parametrize(("steps", "evaluations"), [(131072, 128), (500, 128), (7, 3), (5, 50)])
def test_stops_are_evenly_spread_and_end_at_the_end(steps, evaluations):
    training = Training(steps=steps, evaluations=evaluations)
    points = sorted(evaluation_points(training))
    gaps = np.diff([0, *points])
    assert len(points) == min(steps, evaluations)
    assert points[-1] == steps
    assert gaps.max() - gaps.min() <= 1
    assert set(points) <= set(stopping_points(training))


def test_a_global_generator_is_left_alone(tmp_path):
    torch.manual_seed(11)
    before = torch.get_rng_state()
    tiny.finish(tiny.config(), tmp_path)
    Predictor.load(tmp_path)
    assert torch.get_rng_state().equal(before)


def test_learning_works(tmp_path):
    settings = Config(
        "digits",
        CHOICES["algorithm"]["fixmatch"](),
        Longtail(n_max=20, gamma=1),
        views=CHOICES["views"]["image"](flip=False),
        optimiser=SGD(lr=0.1, ema=0.9),
        training=Training(steps=60, batch=32, ratio=2, evaluations=2, seed=10, device="cpu"),
    )
    *_, last = train(settings, tmp_path)
    assert last["result"]["last"] > 75
