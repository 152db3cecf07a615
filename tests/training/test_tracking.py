"""Curves in TensorBoard, MLflow and W&B, by their own packages: all that metrics.jsonl holds, and each point once."""

import importlib
import struct
import time

import pytest

from cadr.errors import ConfigError, MissingPackageError
from cadr.training import tracking, train
from cadr.training.run_folder import RunFolder
from cadr.training.tracking import check_trackers, tracked
from cadr.training.tracking.base import Tracker, values_of
from tests.training import tiny
from tests.training.tiny import replace

SLOWLY = 1e9  # seconds between checkpoints: a run that is stopped hard loses all of its steps


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setattr(tracking, "SECONDS", 0.0)


def tensorboard_points(folder):
    """(tag, step, value) as they stand in the event files, without the mending that TensorBoard does when it reads."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    files = sorted((folder / "tensorboard").glob("events*"))
    assert len(files) == 1
    for event in EventFileLoader(str(files[0])).Load():
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                yield value.tag, event.step, value.tensor.float_val[0]


def mlflow_points(folder):
    mlflow = pytest.importorskip("mlflow")
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("cadr").experiment_id])
    assert run.info.run_name == folder.name
    assert run.data.params["steps"] == "60"
    for key in run.data.metrics:
        for metric in client.get_metric_history(run.info.run_id, key):
            yield metric.key, metric.step, metric.value


def wandb_records(path):
    """Of a file that `wandb sync` sends: a log of leveldb's, with a protocol buffer in each entry."""
    record_type = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    content, at, parts = path.read_bytes(), 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # the rest of a block in which no head has room
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        parts += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4) and at <= len(content):  # an entry, or the last part of one
            yield record_type.FromString(parts)
            parts = b""


def wandb_points(folder):
    pytest.importorskip("wandb")
    ids = set()
    for path in sorted((folder / "wandb").glob("offline-run-*/*.wandb")):
        end = time.monotonic() + 20
        while not any(record.WhichOneof("record_type") == "exit" for record in wandb_records(path)):
            assert time.monotonic() < end  # it is written by a process of W&B's own
            time.sleep(0.05)
        for record in wandb_records(path):
            if record.WhichOneof("record_type") == "run":
                ids.add(record.run.run_id)
            for item in record.history.item:
                key = item.key or "/".join(item.nested_key)
                if not key.startswith("_"):
                    yield key, record.history.step.num, float(item.value_json)
    assert len(ids) == 1


POINTS = {"tensorboard": tensorboard_points, "mlflow": mlflow_points, "wandb": wandb_points}


def expected(folder):
    classes = tiny.pool().class_names
    return {
        (key, record["step"]): value
        for record in RunFolder(folder).records()
        for key, value in values_of(record, classes).items()
        if not key.startswith("timing/")  # of the steps that are done again, the clock says something else
    }


def check(points, folder):
    found = [point for point in points if not point[0].startswith("timing/")]
    assert len({(key, step) for key, step, _ in found}) == len(found), "a point is there twice"
    wanted = expected(folder)
    assert {(key, step) for key, step, _ in found} == wanted.keys()
    for key, step, value in found:
        assert value == pytest.approx(wanted[key, step], rel=1e-6), (key, step)


def run(settings, out, names):
    return tracked(train(settings, out, pool=tiny.pool()), out, names)


@pytest.mark.parametrize("name", POINTS)
def test_every_point_once_however_often_it_is_stopped(name, tmp_path, monkeypatch):
    """Stopped politely, then killed far beyond its last checkpoint, then finished."""
    pytest.importorskip(tracking.TRACKERS[name].module)
    out, settings = tmp_path / "run", tiny.config()
    records = run(settings, out, [name])
    for record in records:
        if record["step"] >= 20:
            records.close()
    records = run(replace(settings, checkpoint_seconds=SLOWLY), out, [name])
    with monkeypatch.context() as killed:
        killed.setattr("cadr.training.loop.NetworkRun._save", lambda self: None)
        for record in records:
            if record["step"] >= 45:
                records.close()
    *_, last = run(settings, out, [name])
    assert last["kind"] == "finished"
    points = list(POINTS[name](out))
    assert ("evaluation/recall/bee", 60) in {(key, step) for key, step, _ in points}
    assert ("train/loss", 5) in {(key, step) for key, step, _ in points}
    check(points, out)


@pytest.mark.parametrize("name", POINTS)
def test_a_run_that_was_finished_without_it_gets_all_its_points(name, tmp_path):
    pytest.importorskip(tracking.TRACKERS[name].module)
    tiny.finish(tiny.config(), tmp_path / "run")
    for _ in range(2):
        *_, last = run(tiny.config(), tmp_path / "run", [name])
        assert last["kind"] == "finished"
    check(list(POINTS[name](tmp_path / "run")), tmp_path / "run")


def test_times_of_tensorboard_are_those_of_the_run(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    list(run(tiny.config(), tmp_path / "run", ["tensorboard"]))
    (path,) = (tmp_path / "run" / "tensorboard").glob("events*")
    times = {event.step: event.wall_time for event in EventFileLoader(str(path)).Load() if event.step}
    seconds = {r["step"]: r["timing"]["seconds"] for r in RunFolder(tmp_path / "run").records() if r["kind"] == "train"}
    for step in seconds:
        assert times[step] - times[5] == pytest.approx(seconds[step] - seconds[5], abs=1e-3)


class Failing(Tracker):
    """Takes so many points, then its server is gone."""

    module, name, extra = "json", "failing", "failing"
    most = 3

    def __init__(self, folder, begun, points):
        self.left = self.most

    def send(self, points):
        self.left -= len(points)
        if self.left < 0:
            raise RuntimeError("503: gone away")

    def close(self, finished):
        raise RuntimeError("503: still gone")


def test_a_tracker_that_goes_away_does_not_cost_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(tracking.TRACKERS, "failing", Failing)
    records = list(run(tiny.config(), tmp_path / "run", ["failing"]))
    assert records[-1]["kind"] == "finished"
    (message,) = (r["message"] for r in records if r["kind"] == "warning" and "failing" in r["message"])
    assert message.startswith("failing takes no more (503: gone away); training goes on without it")


def test_a_tracker_that_cannot_begin_is_a_sentence(tmp_path, monkeypatch):
    class Refusing(Failing):
        def __init__(self, folder, begun, points):
            raise RuntimeError("no key")

    monkeypatch.setitem(tracking.TRACKERS, "refusing", Refusing)
    with pytest.raises(ConfigError, match=r"--log refusing cannot begin \(no key\)"):
        list(run(tiny.config(), tmp_path / "run", ["refusing"]))


def test_without_the_package_nothing_begins(monkeypatch):
    monkeypatch.setitem(tracking.TRACKERS, "absent", type("Absent", (Failing,), {"module": "no_such_package"}))
    with pytest.raises(MissingPackageError, match="Logging to failing needs the package no_such_package"):
        check_trackers(["absent"])
    with pytest.raises(ConfigError, match="did you mean tensorboard"):
        check_trackers(["tensorbord"])


def test_numbers_of_a_record():
    record = {
        **{"kind": "train", "step": 5, "steps": 5, "loss": 1.5, "terms": {"labelled": 1.0, "a/b": 0.5}, "mask": None},
        **{"prior": [0.25, 0.75], "thresholds": [float("nan"), 1], "lr": 0.1, "confusion": [[1, 2], [3, 4]]},
        **{"timing": {"seconds": 2.0, "steps_per_second": 3.0}},
    }
    assert values_of(record, ("käse/x", "b")) == {
        **{"train/loss": 1.5, "train/terms/labelled": 1.0, "train/terms/a_b": 0.5, "train/lr": 0.1},
        **{"train/prior/käse_x": 0.25, "train/prior/b": 0.75, "train/thresholds/b": 1.0},
        "timing/steps_per_second": 3.0,
    }
    assert values_of({"kind": "train", "step": 5, "prior": [0.5, 0.5]}, ("a/", "a?")) == {
        "train/prior/a_ 0": 0.5,
        "train/prior/a_ 1": 0.5,
    }
    assert values_of({"kind": "warning", "step": 5, "message": "x"}, ("a", "b")) == {}
