"""Recipe rows to records: real, tiny runs of digits in processes of their own."""

import json
import os
import subprocess
import sys
import time

import pytest

from benchmarks import reproduce, run_record
from tests.waiting import PATIENCE, until_lines

RECIPE = """
[settings]
small = { data = "digits", protocol = "longtail", n_max = 20, gamma = 20, model = "mlp", steps = 6 }
[rows]
small-cadr = { setting = "small", algorithm = "cadr" }
small-later = { setting = "small", algorithm = "next_year" }
"""
TINY = ["--batch", "4", "--ratio", "2", "--device", "cpu"]
SCHEMA = {
    *("dataset", "algorithm", "options", "gamma", "n_max", "gamma_unlabelled", "model", "steps", "seed"),
    *("split_sha256", "commit", "torch", "device", "seconds", "ms_per_step", "peak_memory_gib", "curve"),
    *("last", "mean_10", "median_10", "median_20", "best", "gm", "recall", "prior"),
}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    recipe = tmp_path / "small.toml"
    recipe.write_text(RECIPE)
    monkeypatch.setattr(reproduce, "RECIPES", [recipe])
    return ["--runs", str(tmp_path / "runs"), "--records", str(tmp_path / "records")]


def read(tmp_path):
    return {path.name: json.loads(path.read_text()) for path in sorted((tmp_path / "records").glob("*"))}


def test_one_flat_record_per_finished_run(tmp_path, folders, capsys):
    command = ["run", "small-cadr", "--seeds", "1", "2", "--abreast", "2", *folders, *TINY, "--beta", "0.25"]
    assert reproduce.main(command) == 0
    records = read(tmp_path)
    names = [f"small-cadr-batch-4-beta-0.25-ratio-2-steps6-seed{seed}.json" for seed in (1, 2)]
    assert list(records) == names
    for seed, name in enumerate(names, 1):
        record = records[name]
        assert set(record) >= SCHEMA
        assert record["row"] == "small-cadr"
        assert record["overrides"] == {"beta": 0.25, "batch": 4, "ratio": 2}
        assert (record["seed"], record["steps"], record["abreast"]) == (seed, 6, 2)
        assert record["options"] == {"beta": 0.25}
        assert sum(map(sum, record["confusion"])) == 530
        assert [round(100 * line[i] / sum(line), 4) for i, line in enumerate(record["confusion"])] == pytest.approx(
            record["recall"], abs=1e-3
        )
    before = (tmp_path / "records" / names[0]).stat().st_mtime_ns
    assert reproduce.main(command) == 0
    assert (tmp_path / "records" / names[0]).stat().st_mtime_ns == before
    assert "there already" in capsys.readouterr().out


class Played:
    """A process that ends when somebody says so."""

    returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode


def test_a_run_begins_when_those_beside_it_train(tmp_path, folders, monkeypatch):
    begun, processes = [], []

    def start(job, runs, environment, share):
        begun.append(runs / job.name)
        processes.append(Played())
        return processes[-1]

    def written(run, name, when):
        path = begun[run] / name
        path.touch()
        os.utime(path, (when, when))

    def prepares(run, when):
        """As a run does before its first step: its records, none or those of before, and then its input."""
        written(run, "metrics.jsonl", when)
        written(run, "input.json", when)

    def end():
        for process in processes:
            process.returncode = 0

    happens = iter([
        lambda: prepares(0, time.time() - 60),
        lambda: written(0, "metrics.jsonl", time.time() - 50),  # by an earlier command: it says nothing of this one
        lambda: prepares(0, time.time() + 1),
        lambda: None,
        lambda: written(0, "metrics.jsonl", time.time() + 2),
        lambda: (prepares(1, time.time() + 1), written(1, "metrics.jsonl", time.time() + 2)),
        end,
        lambda: None,
    ])  # fmt: skip
    numbers: list[int] = []

    def one_turn_later(seconds):
        numbers.append(len(begun))
        next(happens)()

    monkeypatch.setattr(reproduce, "_start", start)
    monkeypatch.setattr(reproduce, "write_record", lambda *arguments: None)
    monkeypatch.setattr(time, "sleep", one_turn_later)
    assert reproduce.main(["run", "small-cadr", "--seeds", "1", "2", "3", "--abreast", "3", *folders, *TINY]) == 0
    assert numbers == [1, 1, 1, 1, 1, 2, 3, 3]


def test_names_that_were_exchanged_and_labels_that_were_adopted_are_in_the_record(tmp_path):
    job = reproduce.Job(reproduce.RECIPES[1], "cifar10-gamma50-cadr-renaming", 1, 8, {}, ())
    confusions = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    said = [{"kind": "evaluation", "step": step, "confusion": c} for step, c in zip((2, 8), confusions, strict=True)]
    said.insert(1, {"kind": "renaming", "step": 4, "exchanged": [["ship", "truck"], ["cat", "dog"]], "message": "…"})
    said.insert(2, {"kind": "generation", "step": 5, "generation": 1, "adopted": [3, 0], "precision": [75.0, None]})
    (tmp_path / "result.json").write_text('{"last": 5.0}')
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in said))
    record = json.loads(run_record.write_record(job, tmp_path, tmp_path / "records").read_text())
    assert (record["last"], record["row"]) == (5.0, job.row)
    assert record["renamed"] == [[4, [["ship", "truck"], ["cat", "dog"]]]]
    assert record["generations"] == [[5, [3, 0], [75.0, None]]]
    assert record["confusion"] == confusions[-1]


def test_a_run_that_was_stopped_can_be_carried_away_and_continued(tmp_path, folders):
    command = ["run", "small-cadr", *TINY, "--steps", "300", "--log-every", "1", "--evaluations", "4"]
    script = f"from benchmarks import reproduce; from pathlib import *; reproduce.RECIPES = {reproduce.RECIPES!r}"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{script}; import sys; sys.exit(reproduce.main({[*command, *folders]!r}))"],
        cwd=reproduce.ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    name = "small-cadr-batch-4-evaluations-4-ratio-2-steps300-seed1"
    metrics = tmp_path / "runs" / name / "metrics.jsonl"
    until_lines(metrics, 4)
    process.terminate()
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == reproduce.UNFINISHED
    assert f"still to do: {name}. The same command continues." in error
    assert not (tmp_path / "records").exists()

    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    folders[1] = str(tmp_path / "elsewhere")
    assert reproduce.main([*command, *folders]) == 0
    (continued,) = read(tmp_path).values()
    assert continued["abreast"] == 1
    assert reproduce.main([*command, "--runs", str(tmp_path / "again"), "--records", str(tmp_path / "records2")]) == 0
    whole = json.loads((tmp_path / "records2" / f"{name}.json").read_text())
    for key in ("curve", "prior", "confusion", "split_sha256"):
        assert continued[key] == whole[key]


def test_the_time_limit_stops_what_is_running(tmp_path, folders, capsys):
    command = ["run", "small-cadr", "--seeds", "1", "2", *TINY, "--steps", "1000000", *folders]
    assert reproduce.main([*command, "--minutes", "0.01"]) == reproduce.UNFINISHED
    assert "seed1, small-cadr-batch-4-ratio-2-steps1000000-seed2." in capsys.readouterr().err
    assert not (tmp_path / "records").exists()


def test_a_run_that_once_shared_the_machine_says_so(tmp_path, folders):
    command = ["run", "small-cadr", *TINY, *folders]
    together = [*command, "--seeds", "1", "2", "--abreast", "2", "--minutes", "0.0001"]
    assert reproduce.main(together) == reproduce.UNFINISHED
    assert reproduce.main([*command, "--seeds", "1"]) == 0
    (record,) = read(tmp_path).values()
    assert record["abreast"] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nobody"], "there is no row 'nobody'"),
        (["small-later"], "not yet available"),
    ],
)
def test_mistakes_cost_one_sentence(folders, arguments, sentence, capsys):
    assert reproduce.main(["run", *arguments, *folders]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("installed", [True, False])
def test_the_tables_are_rebuilt_where_they_can_be(tmp_path, folders, installed, monkeypatch, capsys):
    script = tmp_path / "rebuild.py"
    script.write_text("import pathlib, cadr; pathlib.Path(__file__).with_suffix('.done').touch()")
    monkeypatch.setattr(reproduce, "REBUILD", [script])
    monkeypatch.setattr(reproduce, "find_spec", lambda name: name if installed or name != "matplotlib" else None)
    command = ["run", "small-cadr", *folders, *TINY]
    (job,) = reproduce.plan(["small-cadr"], [1], TINY)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / f"{job.name}.json").write_text("{}")  # nothing is left to run
    assert reproduce.main(command) == 0
    assert not script.with_suffix(".done").exists()  # the tables are not of these records
    monkeypatch.setattr(reproduce, "RECORDS", tmp_path / "records")
    assert reproduce.main(command) == 0
    assert script.with_suffix(".done").exists() == installed
    assert ("matplotlib not installed here" in capsys.readouterr().err) == (not installed)


def test_a_failed_run_is_reported_and_leaves_no_record(tmp_path, folders, capsys):
    assert reproduce.main(["run", "small-cadr", *folders, "--n-max", "5000", "--device", "cpu"]) == 1
    assert "ended with status 2" in capsys.readouterr().err
    assert not (tmp_path / "records").exists()


def test_only_what_changes_the_run_counts_as_changed():
    (job,) = reproduce.plan(["cifar10-gamma50-cadr"], [3], ["--device", "cpu", "--steps", "32768", "--beta", "0.5"])
    assert job.overrides == {}
    assert job.name == "cifar10-gamma50-cadr-steps32768-seed3"
    (job,) = reproduce.plan(["cifar10-gamma50-cadr"], [3], ["--form", "pinv", "--held-out", "5000"])
    assert job.overrides == {"form": "pinv", "held_out": 5000}


def test_the_rest_of_a_plan(tmp_path, folders, capsys):
    (tmp_path / "plan.txt").write_text(
        f"# why\nsmall-cadr --seeds 1 2 {' '.join(TINY)}\n\nsmall-cadr --beta 1.0 {' '.join(TINY)}  # and this\n"
        f"small-cadr {' '.join(TINY)}\n"
    )
    command = ["rest", "--plan", str(tmp_path / "plan.txt"), *folders]
    names = ["small-cadr-batch-4-ratio-2-steps6-seed1", "small-cadr-batch-4-ratio-2-steps6-seed2"]
    names += ["small-cadr-batch-4-beta-1.0-ratio-2-steps6-seed1"]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / f"{names[1]}.json").write_text("{}")
    assert reproduce.main([*command, "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"      6 steps  {names[0]}",
        f"      6 steps  {names[2]}",
        "2 of 3 runs are left, 12 steps.",
    ]
    assert reproduce.main(command) == 0
    assert sorted(read(tmp_path)) == sorted(f"{name}.json" for name in names)
    assert read(tmp_path)[f"{names[1]}.json"] == {}


def test_the_plan_names_rows_that_are_there():
    jobs = reproduce.read_plan(reproduce.PLAN)
    assert jobs[0].name == "cifar10-gamma50-cadr-steps131072-seed1"
    assert {job.steps for job in jobs} == {2**15, 2**17}


def test_rest_takes_no_flags_of_a_run(folders, capsys):
    with pytest.raises(SystemExit):
        reproduce.main(["rest", *folders, "--beta", "1"])
    assert "no --beta" in capsys.readouterr().err
