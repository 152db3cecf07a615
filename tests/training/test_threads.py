"""Threads follow from the work of a step, and what somebody asked for by OMP_NUM_THREADS stays."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cadr.algorithms import CADR, FixMatch, ReMixMatch
from cadr.config import Config, Training
from cadr.training import train
from cadr.training.clock import advice
from cadr.training.loop import NetworkRun
from cadr.training.threads import WORTH, library_threads_for, num_views, operations, threads_for
from tests.training import tiny


@pytest.fixture
def two_threads(monkeypatch):
    """As on a machine where nobody has said how many."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def prepared(model: nn.Module, batch: int = 8, device: str = "cpu") -> Any:
    config = Config("x", FixMatch(), training=Training(batch=batch, ratio=2))
    return SimpleNamespace(device=torch.device(device), model=model, config=config)


def inputs(width: int) -> Any:
    return SimpleNamespace(examples=torch.zeros(3, width), ready=lambda views, model, dtype: views)


def test_the_work_of_a_step_is_that_of_its_views():
    assert num_views(FixMatch(), Training(batch=8, ratio=2)) == 8 + 2 * 2 * 8
    assert num_views(ReMixMatch(), Training(batch=8, ratio=2)) == 8 * (1 + 2 * 9)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
    by_hand = 3 * 2 * (10 * 20 + 20 * 3) * (8 + 32)  # forwards and twice backwards, a product and a sum each
    assert operations(prepared(model), inputs(10)) == by_hand
    assert model.training
    convolution = nn.Conv2d(3, 5, 3, padding=1)
    pictures: Any = SimpleNamespace(examples=torch.zeros(2, 3, 8, 8), ready=lambda views, model, dtype: views)
    assert operations(prepared(convolution), pictures) == 3 * 2 * (3 * 5 * 9 * 64) * 40


def test_of_a_network_that_takes_no_single_example_nothing_is_known():
    class Picky(nn.Linear):
        def forward(self, x):
            if len(x) == 1:
                raise ValueError("too few")
            return super().forward(x)

    assert operations(prepared(Picky(4, 2)), inputs(4)) == math.inf
    assert operations(prepared(nn.Linear(4, 2), device="meta"), inputs(4)) == math.inf


@pytest.mark.usefixtures("two_threads")
def test_little_work_gets_one_thread_and_much_work_all():
    for work, threads in ((0.9 * WORTH, 1), (WORTH, 2), (math.inf, 2)):
        with threads_for(work) as given:
            assert given == torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_what_somebody_asked_for_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with threads_for(1.0) as given:
        assert given == 2


@pytest.mark.usefixtures("two_threads")
def test_a_small_run_takes_one_thread_and_gives_the_others_back(tmp_path, monkeypatch):
    seen = set()
    advance = NetworkRun._advance

    def spied(self, *arguments):
        seen.add(torch.get_num_threads())
        return advance(self, *arguments)

    monkeypatch.setattr(NetworkRun, "_advance", spied)
    tiny.finish(tiny.config(steps=6), tmp_path / "run")
    assert seen == {1}
    assert torch.get_num_threads() == 2
    stopped = train(tiny.config(steps=6), tmp_path / "other", pool=tiny.pool())
    next(stopped)
    stopped.close()
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_libraries_that_fit_an_ensemble_do_the_same():
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="scikit-learn is not installed")
    np.eye(3) @ np.eye(3)
    few = tiny.pool()
    with library_threads_for(few):
        assert {lib["num_threads"] for lib in threadpoolctl.threadpool_info()} == {1}
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def run_told(told, left, done=10):
    settings = Training(steps=done + left)
    run: Any = SimpleNamespace(told=told, training=settings, step=SimpleNamespace(done=done))
    run._hint_of = lambda seconds, message: NetworkRun._hint_of(run, seconds, message)
    return run


@pytest.mark.parametrize(
    ("told", "taken", "said"),
    [
        (1.0, 30.0, "At the pace of the last 10 steps it will take 5 min 00 s more."),  # three times slower
        (1.0, 5.0, "At the pace of the last 10 steps it will take 50 s more."),  # twice as fast
        (1.0, 12.0, None),
        (None, 30.0, None),  # nobody was told anything
        (0.001, 0.1, None),  # and what takes a second is not worth saying
    ],
)
def test_a_pace_that_was_wrong_is_put_right_once(told, taken, said):
    run = run_told(told, left=100)
    hints = list(NetworkRun._correct(run, taken, 10))
    assert [hint["message"] for hint in hints] == ([] if said is None else [said])
    assert list(NetworkRun._correct(run, taken, 10)) == []


def test_nothing_is_left_to_say_at_the_end():
    assert list(NetworkRun._correct(run_told(1.0, left=0), 30.0, 10)) == []


def test_pictures_without_a_gpu_come_with_advice_where_they_take_long():
    assert advice(60.0, 224) == ""
    said = advice(12_000.0, 224)
    assert "--features NAME" in said
    assert "--image-size 32 takes about 49 times fewer operations" in said
    assert "--image-size" not in advice(12_000.0, 32)


def test_the_advice_is_for_pictures_on_a_cpu_alone():
    for is_image, device, given in ((True, "cpu", True), (False, "cpu", False), (True, "cuda", False)):
        run: Any = SimpleNamespace(
            inputs=SimpleNamespace(is_image=is_image, examples=torch.zeros(1, 84, 84, 3)),
            step=SimpleNamespace(device=torch.device(device)),
        )
        assert bool(NetworkRun._advice(run, 12_000.0)) is given


def test_the_numbers_of_views_are_those_of_the_method():
    assert num_views(CADR(), Training(batch=4, ratio=7)) == 4 * (1 + 14)
