"""Predictions, vectors and comparisons in a Ray cluster of two processes: as without it, whoever is killed."""

import contextlib
import json
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from benchmarks.ray_workers import working

from cadr.cli.main import main
from cadr.errors import TrainingError
from cadr.inference import ray_predict
from cadr.inference.predict import predict_file
from cadr.utils import ray_cluster
from tests.report.own_runs import COLUMNS, NAMES, table, write_csv
from tests.test_examples import run_example

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'cadr[ray]'")
pytestmark = [
    pytest.mark.xdist_group("ray"),  # with one cluster
    pytest.mark.filterwarnings("ignore:::ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of Ray about itself
]


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        ray_cluster.connect(ray, cpus=2)
        yield
        ray.shutdown()


@pytest.fixture(autouse=True)
def _unlimited():
    """Ray starts processes, which takes a while where there is much else to do."""
    signal.alarm(900)


def test_predictions_are_those_of_the_plain_command(trees, tmp_path, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x, truth = table(20_000, seed=3)
    np.savez(tmp_path / "new.npz", x=x, y=NAMES[truth])
    labels = [None if i % 3 else str(NAMES[truth[i]]) for i in range(len(x))]
    columns = {"id": [f"tree {i}" for i in range(len(x))], **dict(zip(COLUMNS, x.T, strict=True)), "label": labels}
    pq.write_table(pa.table(columns), tmp_path / "new.parquet", row_group_size=7_000)
    rows = [[f"line\n{i}", *x[i]] for i in range(2_000)]
    write_csv(tmp_path / "new.csv", ["id", *COLUMNS], rows)
    for data, out in (("new.npz", "p.csv"), ("new.parquet", "p.parquet"), ("new.csv", "q.csv")):
        said = []
        for flags in ([], ["--engine", "ray"]):
            (tmp_path / "".join(flags)).mkdir(exist_ok=True)
            written = tmp_path / "".join(flags) / out
            assert main(["predict", str(trees), str(tmp_path / data), "--out", str(written), *flags]) == 0
            said.append([line for line in capsys.readouterr().out.splitlines() if " s, written to " not in line])
        assert said[0] == said[1]
        assert (tmp_path / "--engineray" / out).read_bytes() == (tmp_path / out).read_bytes()


def test_a_worker_is_killed(trees, tmp_path):
    np.save(tmp_path / "new.npy", np.tile(table(40_000, seed=4)[0], (10, 1)))
    killed: list[int] = []

    def kill(rows):
        if not killed and rows > 50_000 and (workers := working("ray::MapWorker")):
            os.kill(workers[0], signal.SIGKILL)
            killed.append(rows)

    data = str(tmp_path / "new.npy")
    predict_file(trees, data, tmp_path / "plain.csv", device="cpu")
    engine = ray_predict.RayEngine()
    predict_file(trees, data, tmp_path / "ray.csv", device="cpu", engine=engine, progress=kill)
    assert killed
    assert killed[0] < 400_000
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()


def test_a_mistake_in_the_data_is_the_same_sentence(trees, tmp_path, capsys):
    rows = table(40)[0].tolist()
    rows[-1][1] = "many"
    data = write_csv(tmp_path / "new.csv", COLUMNS, rows)
    (tmp_path / "out").mkdir()
    command = ["predict", str(trees), str(data), "--out", str(tmp_path / "out" / "p.csv")]
    said = []
    for flags in ([], ["--engine", "ray"]):
        assert main([*command, *flags]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert "many" in said[0]
    assert list((tmp_path / "out").iterdir()) == []


def dies(item):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_lost_for_good(monkeypatch):
    monkeypatch.setattr(ray_cluster, "LOSSES", 0)
    with ray_cluster.cluster() as connected, pytest.raises(TrainingError, match="a Ray worker was lost 1 times"):
        list(ray_cluster.run_tasks(connected, dies, [1]))


def refused(trees, tmp_path, capsys, *flags):
    np.save(tmp_path / "new.npy", table(4)[0])
    assert main(["predict", str(trees), str(tmp_path / "new.npy"), "--out", str(tmp_path / "p.csv"), *flags]) == 2
    assert not (tmp_path / "p.csv").exists()
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_more_gpus_than_there_are(trees, tmp_path, capsys):
    error = refused(trees, tmp_path, capsys, "--engine", "ray", "--gpus", "0.5")
    assert error.startswith("cadr: --gpus 0.5: the Ray cluster has 0 GPUs")


def test_nobody_at_the_address(trees, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for address in ("127.0.0.1:9", "nowhere", "ray://127.0.0.1:9"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        error = refused(trees, tmp_path, capsys, "--engine", "ray")
        assert error.startswith(f"cadr: no Ray cluster answers at {address} (RAY_ADDRESS): ")


def test_no_ray(trees, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    error = refused(trees, tmp_path, capsys, "--engine", "ray")
    assert error == "cadr: --engine ray needs the package ray: pip install 'cadr[ray]'\n"


def test_what_does_not_go_together(trees, tmp_path, capsys):
    assert "leave out --shard" in refused(trees, tmp_path, capsys, "--engine", "ray", "--shard", "1/2")
    assert "--gpus belongs to --engine ray" in refused(trees, tmp_path, capsys, "--gpus", "1")


def test_nothing_is_begun_that_cannot_be_written(trees, tmp_path, capsys):
    np.save(tmp_path / "new.npy", table(4)[0])
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "p.csv"
    with contextlib.suppress(NotADirectoryError):
        assert main(["predict", str(trees), str(tmp_path / "new.npy"), "--out", str(out), "--engine", "ray"]) == 2
        assert "cannot be used" in capsys.readouterr().err


def results(folder):
    """What runs came to, but for how long it took."""
    timed = {"seconds", "ms_per_step", "peak_memory_gib"}
    found = {}
    for path in sorted(folder.glob("*/result.json")):
        found[path.parent.name] = {k: v for k, v in json.loads(path.read_text()).items() if k not in timed}
    return found


def test_a_comparison_whose_worker_is_killed(tmp_path, capsys):
    tiny = [
        "--checkpoint-seconds",
        "0",
        "--steps",
        "300",
        "--batch",
        "4",
        "--ratio",
        "2",
        "--evaluations",
        "3",
        "--model",
        "mlp",
        "--hidden",
        "8",
    ]
    split = ["--protocol", "longtail", "--n-max", "20", "--gamma", "20"]
    compare = ["compare", "digits", *split, *tiny, "--algorithms", "fixmatch", "cadr", "--seeds", "3"]
    assert main([*compare, "--out", str(tmp_path / "plain")]) == 0
    killed: list[int] = []

    def kill_one():
        """As soon as something was saved of a run that is not finished."""
        while not killed:
            begun = [p.parent.parent for p in (tmp_path / "ray").glob("*/checkpoint/*") if p.is_file()]
            if any(not (folder / "result.json").exists() for folder in begun):
                for process in working("ray::there")[:1]:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)
            time.sleep(0.01)

    threading.Thread(target=kill_one, daemon=True).start()
    assert main([*compare, "--out", str(tmp_path / "ray"), "--engine", "ray"]) == 0
    assert killed
    assert len(results(tmp_path / "plain")) == 6
    assert results(tmp_path / "ray") == results(tmp_path / "plain")
    assert capsys.readouterr().out.count("Highest accuracy over 3 seeds") == 2


def test_the_exported_model_without_our_package(trees, tmp_path):
    address = ray.get_runtime_context().gcs_address
    run_example("predict_in_ray.py", trees, tmp_path, {"RAY_ADDRESS": address})
