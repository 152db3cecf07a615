"""Freed memory is kept while somebody works, and given back afterwards; whose malloc is set up otherwise keeps that."""

import json
import platform
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn

from cadr.data.pool import Pool
from cadr.inference.evaluation import UserLabels
from cadr.inference.predict import predict_file
from cadr.inference.predictor import Predictor
from cadr.training import train
from cadr.training.network import call
from cadr.utils import memory
from tests.training import tiny

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
MEGABYTES = 256

PROGRAM = f"""
import json, resource
from contextlib import ExitStack
import numpy as np
from cadr.utils.memory import freed_memory_kept

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20

def use():
    "Page faults of two blocks at a time, after one another."
    before = faults()
    for _ in range(4):
        blocks = [np.full({MEGABYTES // 2} << 17, 1.0) for _ in range(2)]
        del blocks
    return faults() - before

use()
said = {{"without": use(), "resident before": resident()}}
with ExitStack() as outer:
    outer.enter_context(freed_memory_kept())
    use()
    with freed_memory_kept():
        said["with"] = use()
    said["within"] = use()  # the inner one has ended, the outer one has not
    said["resident within"] = resident()
said["resident after"], said["after"] = resident(), use()
print(json.dumps(said))
"""


def run(program=PROGRAM, **environment):
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@glibc
def test_pages_are_cleared_once_and_given_back_at_the_end():
    said = run()
    assert said["without"] > 0
    assert said["with"] < 0.01 * said["without"], said
    assert said["within"] < 0.01 * said["without"], said
    assert said["after"] > 0.5 * said["without"], said
    assert said["resident within"] > said["resident before"] + 0.9 * MEGABYTES
    assert said["resident after"] < said["resident before"] + 0.1 * MEGABYTES


@glibc
@pytest.mark.parametrize(
    "own", [{"MALLOC_ARENA_MAX": "2"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}], ids=["variable", "tunable"]
)
def test_settings_of_ones_own_are_left_alone(own):
    said = run(**own)
    assert said["with"] > 0.5 * said["without"], said


@glibc
def test_nothing_is_kept_where_there_is_no_room():
    scarce = "from cadr.utils import memory\nmemory.available = lambda: 1 << 28\n"
    said = run(scarce + PROGRAM)
    assert said["with"] > 0.5 * said["without"], said


@pytest.mark.parametrize(("left", "roomy"), [(None, True), (2.1, True), (1.9, False)])
def test_room_is_twice_what_was_ever_in_use(left, roomy, monkeypatch):
    resource = pytest.importorskip("resource")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    monkeypatch.setattr(memory, "available", lambda: None if left is None else left * most)
    assert memory._roomy() is roomy


def test_other_systems_are_left_alone(monkeypatch):
    memory._glibc.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    try:
        assert memory._glibc() is None
        with memory.freed_memory_kept():
            pass
    finally:
        memory._glibc.cache_clear()


def test_training_keeps_what_it_frees_until_it_is_closed(tmp_path):
    records = train(tiny.config(), tmp_path, pool=tiny.pool())
    assert next(records)["kind"] == "start"
    assert memory._users == 0  # until the first steps show how much memory they take
    assert next(r for r in records if r["kind"] == "train")
    assert memory._users == 1
    records.close()
    assert memory._users == 0


@glibc
def test_a_first_step_shows_how_much_memory_is_needed_and_the_pace_is_told_with_it_kept(tmp_path, monkeypatch):
    network, seen = nn.Linear(4, 3), []
    rows = 8 + 2 * 16  # of a step; before it the model is tried on fewer

    def note(what: str) -> float:
        seen.append(what)
        return 0.0

    network.register_forward_hook(lambda _, inputs, __: None if len(inputs[0]) != rows else seen.append("step"))
    monkeypatch.setattr(memory, "_roomy", lambda: note("room?") == 0)
    monkeypatch.setattr("cadr.training.loop.seconds_left", lambda *_: note(f"pace, {memory._users}"))
    tiny.finish(tiny.config(), tmp_path, model=network)
    assert seen[:4] == ["step", "room?", "pace, 1", "step"]


@pytest.mark.parametrize("fails", [False, True])
def test_from_the_second_batch_on_memory_is_kept(fails):
    users = []

    def work():
        with memory.kept_from_the_second("abc") as batches:
            for batch in batches:
                users.append((batch, memory._users))
                if fails and batch == "b":
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) if fails else nullcontext() as caught:
        work()
    assert users == [("a", 0), ("b", 1), ("c", 1)][: 2 if fails else 3]
    assert memory._users == 0, caught  # what holds on to the error holds on to the loop


def test_predicting_many_rows_keeps_what_it_frees(tmp_path, monkeypatch):
    tiny.finish(tiny.config(), tmp_path / "run")
    users = []

    def watched(*arguments):
        users.append(memory._users)
        return call(*arguments)

    monkeypatch.setattr("cadr.inference.predictor.call", watched)
    monkeypatch.setattr("cadr.inference.predictor.at_once", lambda *_: 600)
    loaded = Predictor.load(tmp_path / "run", device="cpu")
    for rows in (1000, 1001):
        loaded.logits(np.zeros((rows, 4), np.float32))
    assert users == [0, 0, 0, 1]  # for a few rows, giving memory back is not worth it
    np.save(tmp_path / "x.npy", np.zeros((5, 4), np.float32))
    monkeypatch.setattr("cadr.data.sources.arrays.ROWS", 2)
    predict_file(tmp_path / "run", str(tmp_path / "x.npy"), tmp_path / "p.csv", device="cpu")
    assert users[4:] == [0, 1, 1]
    assert memory._users == 0


def test_counting_predicted_shares_keeps_what_it_frees(monkeypatch):
    users = []

    class Predicting:
        def probabilities(self, examples):
            users.append((len(examples), memory._users))
            return torch.eye(2)[[0] * len(examples)]

    monkeypatch.setattr("cadr.inference.evaluation._AT_ONCE", 2)
    pool = Pool(np.zeros((7, 3), np.float32), np.array([0, 1, -1, -1, -1, -1, -1]), ("a", "b"))
    found = UserLabels(pool, Namespace(classes=[None] * 2))._shares(Predicting())  # type: ignore[arg-type]
    assert (found, users) == ([1.0, 0.0], [(2, 0), (2, 1), (1, 1)])
    assert memory._users == 0
