"""Waiting for processes that may have been killed."""

import multiprocessing
import os
import queue
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cadr.algorithms import CADR
from cadr.cli import runs
from cadr.cli.runs import _next, _work
from cadr.config import Config
from cadr.errors import TrainingError
from cadr.training.plan import Opened


class Answers:
    """A queue that is empty so many times."""

    def __init__(self, empty, answer=None):
        self.empty, self.answer = empty, answer

    def get(self, timeout):
        self.empty -= 1
        if self.empty >= 0:
            raise queue.Empty
        return self.answer


def workers(*exitcodes):
    return [SimpleNamespace(exitcode=code) for code in exitcodes]


def test_an_answer_is_waited_for_while_processes_live_or_have_ended_well():
    assert _next(Answers(3, (1, {"last": 2.0})), workers(None, 0)) == (1, {"last": 2.0})


def test_a_killed_process_is_no_endless_wait():
    with pytest.raises(TrainingError, match=r"killed by signal 9 .*the same command continues"):
        _next(Answers(3), workers(None, -9))


def test_a_defect_in_a_process_is_not_put_down_to_the_input():
    with pytest.raises(RuntimeError, match="traceback stands above"):
        _next(Answers(3), workers(1, None))


def test_a_run_that_is_stopped_while_it_warns_is_closed_before_anything_else(monkeypatch):
    closed = []

    def warning(*_):
        try:
            yield {"kind": "warning", "message": "Nobody predicts class 3."}
        finally:
            closed.append(True)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "train", warning)
    monkeypatch.setattr("builtins.print", stopped)
    with pytest.raises(KeyboardInterrupt) as held:  # the traceback still holds on to the run
        runs.quietly(runs.Job(Config("digits", CADR()), Path("run")), Opened(), runs.complain)
    assert held.value.__traceback__ is not None
    assert closed


@pytest.mark.parametrize(
    "error",
    [
        TrainingError("The loss is no longer finite."),
        MemoryError(),
        RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory"),
        torch.OutOfMemoryError("CUDA out of memory"),
        PermissionError(13, "Permission denied", "config.toml.new"),
    ],
)
def test_a_process_whose_run_failed_begins_no_other(monkeypatch, error):
    """The failure may have come with a request to stop, which nobody would repeat."""
    answers, left = work_failing(monkeypatch, error)
    assert answers == [(0, error)]
    assert left == [(1, "second")]


def test_a_defect_is_no_answer(monkeypatch):
    with pytest.raises(RuntimeError, match="shapes"):
        work_failing(monkeypatch, RuntimeError("shapes do not match"))


def work_failing(monkeypatch, error):
    """What a worker of two tasks answers, of which every one fails, and the tasks that it leaves."""

    def failing(job, opened, warn):
        raise error

    monkeypatch.setattr(runs, "quietly", failing)
    monkeypatch.setattr("os.setpgrp", lambda: None)
    monkeypatch.setattr("torch.set_num_threads", lambda n: None)
    tasks = iter([(0, "first"), (1, "second")])
    answers: list[tuple[int, Exception]] = []
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _work(SimpleNamespace(get=lambda: next(tasks)), SimpleNamespace(put=answers.append))
    finally:
        signal.signal(signal.SIGTERM, handler)
    return answers, list(tasks)


def ask_late():
    _work(SimpleNamespace(get=lambda: None), None)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_process_that_is_told_to_stop_when_it_is_done_says_nothing(capfd):
    process = multiprocessing.get_context("spawn").Process(target=ask_late)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGTERM
    assert "Traceback" not in capfd.readouterr().err
