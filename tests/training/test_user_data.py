"""Runs on data without a test set: what is held out, what the folder keeps, and what is chosen when nobody chooses."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from cadr.config import CHOICES, Config, Source, Training
from cadr.data import Pool
from cadr.errors import DataError
from cadr.estimate.calibration import calibrate
from cadr.inference import evaluate_run
from cadr.inference.predictor import Predictor
from cadr.training import loop, train
from cadr.training.feed import Inputs
from cadr.training.plan import SIZES, plan, sizes
from cadr.training.signature import InputSpec
from cadr.utils.text import duration


def blobs(n=120, labelled=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    examples = (5 + 3 * rng.normal(size=(n, 4)) + 9 * np.eye(3, 4)[truth]).astype(np.float32)
    labels = np.where(np.arange(n) < labelled, truth, -1)
    return Pool(examples, labels, ("a", "b", "c"), "blobs", feature_names=("p", "q", "r", "s"))


def config(**training):
    given: dict[str, Any] = {"steps": 40, "batch": 8, "ratio": 2, "evaluations": 4, "device": "cpu"} | training
    return Config("blobs", CHOICES["algorithm"]["cadr"](), training=Training(**given))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("own") / "run"
    return out, list(train(config(), out, blobs()))


def test_a_fifth_of_the_labels_is_judged_on(run):
    out, records = run
    rows = json.loads((out / "validation.json").read_text())["rows"]
    assert len(rows) == 9  # a fifth of 14, 13 and 13, rounded
    evaluations = [r for r in records if r["kind"] == "evaluation"]
    assert {r["on"] for r in evaluations} == {"validation"}
    assert sum(map(sum, evaluations[-1]["confusion"])) == 9
    assert records[-1]["result"]["evaluated_on"] == "validation"
    assert "31 labelled and 80 unlabelled examples" in records[0]["message"]
    assert "It holds out 9 more labels" in records[0]["message"]


def test_evaluating_the_run_again_agrees(run):
    out, records = run
    last = [r for r in records if r["kind"] == "evaluation"][-1]
    again = evaluate_run(out, pool=blobs(), device="cpu")
    assert again["confusion"] == last["confusion"]
    assert again["on"] == "validation"


def test_a_continued_run_keeps_what_it_holds_out(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    list(train(config(), whole, blobs()))
    run = train(config(checkpoint_seconds=0.0), broken, blobs())
    for record in run:
        if record["kind"] == "evaluation":
            break
    run.close()
    before = (broken / "validation.json").read_text()
    list(train(config(checkpoint_seconds=0.0), broken, blobs()))
    assert (broken / "validation.json").read_text() == before == (whole / "validation.json").read_text()
    curves = [json.loads((out / "result.json").read_text())["curve"] for out in (whole, broken)]
    assert curves[0] == curves[1]
    assert (broken / "calibration.json").read_text() == (whole / "calibration.json").read_text()


def test_other_labels_are_noticed(tmp_path):
    run = train(config(checkpoint_seconds=0.0), tmp_path, blobs())
    for record in run:
        if record["kind"] == "evaluation":
            break
    run.close()
    with pytest.raises(DataError, match=r"no longer|changed"):
        list(train(config(checkpoint_seconds=0.0), tmp_path, blobs(labelled=20)))


def test_the_folder_says_what_the_model_takes(run):
    out, _ = run
    spec, pool = InputSpec.read(out), blobs()
    assert (spec.kind, spec.shape, spec.rows) == ("features", (4,), 120)
    assert spec.class_names == ("a", "b", "c")
    assert spec.feature_names == ("p", "q", "r", "s")
    assert spec.labels == (14, 13, 13)
    held_out = json.loads((out / "validation.json").read_text())["rows"]
    stream = np.delete(pool.examples, held_out, axis=0).astype(np.float64)
    np.testing.assert_allclose(np.array(spec.centre), stream.mean(0), rtol=1e-5)
    np.testing.assert_allclose(np.array(spec.scale), stream.std(0), rtol=1e-5)


def test_calibration_is_kept_and_sensible(run):
    content = json.loads((run[0] / "calibration.json").read_text())
    assert content["examples"] == 9
    assert 0.05 < content["temperature"] < 20
    assert len(content["correction"]) == 3


def test_calibration_is_to_the_labels_held_out_and_to_what_is_predicted_of_all_rows(run):
    out, records = run
    pool, rows = blobs(), json.loads((out / "validation.json").read_text())["rows"]
    logits = Predictor.load(out, device="cpu").logits(pool.examples[rows])
    prior = torch.tensor(records[-1]["result"]["prior"])
    expected = calibrate(logits, torch.tensor(pool.labels[rows]), torch.tensor(pool.counts), prior, len(pool.labels))
    content = json.loads((out / "calibration.json").read_text())
    for name in ("error_before", "error_after", "temperature", "correction"):
        assert content[name] == pytest.approx(getattr(expected, name), rel=1e-4), name


def test_nothing_is_held_out_when_not_wanted_or_not_possible(tmp_path):
    none = Config("blobs", CHOICES["algorithm"]["cadr"](), source=Source(validation=0.0), training=config().training)
    records = list(train(none, tmp_path / "none", blobs()))
    assert "no test set" in records[0]["message"]
    assert not (tmp_path / "none" / "validation.json").exists()
    assert not (tmp_path / "none" / "calibration.json").exists()
    list(train(config(), tmp_path / "few", blobs(labelled=3)))
    assert not (tmp_path / "few" / "validation.json").exists()


def test_a_long_run_says_how_long(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_WORTH_SAYING", 0.0)
    records = list(train(config(steps=60), tmp_path, blobs()))
    hints = [r for r in records if r["kind"] == "hint"]
    assert len(hints) == 1
    assert 2 <= hints[0]["step"] < next(r["step"] for r in records if r["kind"] == "train")
    assert "about" in hints[0]["message"]
    assert "hint" not in (tmp_path / "metrics.jsonl").read_text()


def test_the_hint_changes_nothing(tmp_path, monkeypatch):
    list(train(config(), tmp_path / "with", blobs()))
    monkeypatch.setattr(loop.NetworkRun, "_hint", lambda self: iter(()))
    list(train(config(), tmp_path / "without", blobs()))
    read = [torch.load(tmp_path / n / "checkpoint" / "part-000.pt", weights_only=True) for n in ("with", "without")]
    assert all(torch.equal(read[0][key], read[1][key]) for key in read[0])


def test_long_durations():
    assert duration(100 * 3600) == "4 days 4 h"


def images(side, n=600):
    labels = np.where(np.arange(n) < 40, np.arange(n) % 2, -1)
    return Pool(np.zeros((n, side, side, 3), dtype=np.uint8), labels, ("a", "b"))


def test_defaults_follow_the_data():
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert sizes(blobs(), {}, cpu)["model"] == "mlp"
    assert sizes(images(16), {}, cpu)["model"] == "convnet"
    assert sizes(images(32), {}, gpu)["model"] == "wrn-28-2"
    assert sizes(images(32), {}, cpu)["model"] == "convnet"  # a deep one would take days
    assert "model" not in sizes(images(32), {"model": "resnet-18"}, cpu)
    assert sizes(blobs(), {}, cpu)["steps"] < sizes(images(32), {}, gpu)["steps"] <= 2**17
    more = sizes(blobs(n=3000), {}, cpu)
    assert more["steps"] * more["batch"] * more["ratio"] == pytest.approx(100 * 3000, rel=1e-3)  # a hundred passes
    for chosen in (sizes(blobs(), {}, cpu), sizes(images(32), {}, gpu)):
        assert set(chosen) == set(SIZES)
        assert 0.9 <= chosen["ema"] <= 0.999
    # Of a short run, too, the average forgets the random start: it keeps 0.7 % of it.
    assert sizes(blobs(), {"steps": 150}, cpu)["ema"] ** 150 == pytest.approx(0.0067, rel=0.2)
    assert sizes(blobs(), {"steps": 3}, cpu)["ema"] == 0.5


def test_a_protocol_on_own_data_leaves_the_choice_to_the_data(tmp_path):
    np.savez(tmp_path / "mine.npz", x=blobs().examples, y=np.arange(len(blobs().examples)) % 2)
    flat = {"data": str(tmp_path / "mine.npz"), "algorithm": "cadr", "protocol": "mcar", "n": 20, "device": "cpu"}
    chosen = plan(flat, out=tmp_path / "run").config
    assert (chosen.training.steps, chosen.training.batch, chosen.algorithm.target_prior) == (500, 32, ())


def test_a_run_that_is_there_decides_what_was_left_open(tmp_path):
    np.savez(tmp_path / "mine.npz", x=blobs().examples, y=blobs().labels)
    flat = {"data": str(tmp_path / "mine.npz"), "algorithm": "cadr", "device": "cpu"}
    chosen = plan(flat, out=tmp_path / "run")
    assert chosen.pool is not None
    assert chosen.config.training.steps == 500
    assert plan(flat | {"steps": 7}, out=tmp_path / "run").config.training.steps == 7
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text(Config.from_dict(flat | {"steps": 7, "lr": 0.5}).to_toml())
    kept = plan(flat, out=tmp_path / "run")
    assert kept.pool is None
    assert (kept.config.training.steps, kept.config.optimiser.lr) == (7, 0.5)


def test_features_in_a_mapped_file_are_checked_before_they_are_used(tmp_path):
    n = (1 << 24) // 16 + 10  # more than is looked at when the file is opened
    examples = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(n, 4))
    examples[n - 1, 2] = np.nan
    examples.flush()
    labels = np.where(np.arange(n) < 20, np.arange(n) % 2, -1)
    pool = Pool(np.load(tmp_path / "x.npy", mmap_mode="r"), labels, ("a", "b"))
    with pytest.raises(DataError, match=f"examples\\[{n - 1}, 2\\] is nan"):
        Inputs.of(pool, torch.device("cpu"))


def test_a_finished_run_is_of_the_labels_it_was_trained_on(run):
    out, records = run
    more = blobs(labelled=60)  # the first forty as before, so that what is held out is still there
    with pytest.raises(DataError, match=r"data have changed since .*train into a new folder"):
        evaluate_run(out, pool=more, device="cpu")
    with pytest.raises(DataError, match=r"data have changed since .*train into a new folder"):
        list(train(config(), out, more))
    (again,) = train(config(), out, blobs())
    assert again["result"] == records[-1]["result"]
    (gone,) = train(config(), out)  # data that are gone cannot be compared, and the run is as good as before
    assert gone["result"] == records[-1]["result"]
