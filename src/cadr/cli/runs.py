"""Bring several runs to their end, one after another or side by side in processes."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cadr.cli.terminal import stopping_politely
from cadr.config import Config
from cadr.data import Pool
from cadr.errors import CadrError, TrainingError, costs_a_sentence
from cadr.training import train
from cadr.training.interrupt import Deferred
from cadr.training.loggers import follow
from cadr.training.plan import Opened
from cadr.training.result import quoted_of

Result = dict[str, Any]


class Job(NamedTuple):
    config: Config
    out: Path


def finish(jobs: Sequence[Job], processes: int = 1, opened: Opened | None = None) -> list[Result]:
    """The results in the order of the jobs; finished ones are read, unfinished ones continued."""
    with stopping_politely():
        return _in_turn(jobs, opened or Opened()) if processes == 1 else _side_by_side(jobs, processes)


def _in_turn(jobs: Sequence[Job], opened: Opened) -> list[Result]:
    results = []
    for number, job in enumerate(jobs, 1):
        label = f"{number}/{len(jobs)} {job.out.name}"
        results.append(follow(train(job.config, job.out, _pool(job, opened)), label)["result"])
    return results


def _pool(job: Job, opened: Opened) -> Pool | None:
    """The data, which all jobs on them share; a finished run can do without, any other says why it cannot."""
    try:
        return opened.pool(job.config)
    except (CadrError, OSError):
        return None


def _side_by_side(jobs: Sequence[Job], processes: int) -> list[Result]:
    """Processes that live for many runs each, forked from one that has imported torch and nothing else has touched."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    tasks: Any = context.Queue()
    answers: Any = context.Queue()
    for task in [*enumerate(jobs), *[None] * processes]:
        tasks.put(task)
    workers = [context.Process(target=_work, args=(tasks, answers), daemon=True) for _ in range(processes)]
    results: dict[int, Result] = {}
    try:
        _start(workers)
        while len(results) < len(jobs):
            index, answer = _next(answers, workers)
            if isinstance(answer, Exception):
                raise answer
            results[index] = answer
            print(f"{len(results)}/{len(jobs)} {jobs[index].out.name}: {scores(answer)}", flush=True)
    except BaseException:
        for worker in workers:
            if worker.is_alive() and worker.pid:
                os.kill(worker.pid, signal.SIGTERM)
        tasks.cancel_join_thread()
        raise
    finally:
        for worker in workers:
            if worker.pid:
                worker.join()
    return [results[index] for index in range(len(jobs))]


def _start(workers: Sequence[BaseProcess]) -> None:
    """All of them, before anybody is heard who asks to stop: one that is half started cannot be told to.

    They inherit that they do not hear it either, as long as they are being set up.
    """
    with Deferred() as interrupt:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            for worker in workers:
                worker.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if interrupt.requested:
        raise KeyboardInterrupt


def _next(answers: Any, workers: Sequence[BaseProcess]) -> tuple[int, Result | Exception]:
    """The next answer, without waiting for ever on a process that the system has killed."""
    while True:
        try:
            answer: tuple[int, Result | Exception] = answers.get(timeout=1.0)
            return answer
        except queue.Empty:
            ended = [w.exitcode for w in workers if w.exitcode]
            if ended and ended[0] > 0:
                raise RuntimeError("a process failed; its traceback stands above") from None
            if ended:
                raise TrainingError(
                    f"a process was killed by signal {-ended[0]} before its run ended (out of memory?); "
                    "the same command continues, and --processes 1 needs least memory"
                ) from None


def _work(tasks: Any, answers: Any) -> None:
    """A worker: runs until there are no more. Ctrl-C on the terminal reaches the parent alone, which passes it on."""
    os.setpgrp()
    torch.set_num_threads(1)  # processes, not threads, share the cores
    with stopping_politely():  # no longer: when nothing is left to save, a late request just ends the process
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            threading.Thread(target=_stop_with_parent, daemon=True).start()
            _answer(tasks, answers)
        except KeyboardInterrupt:
            answers.cancel_join_thread()


def _stop_with_parent() -> None:
    """A parent that was killed passes nothing on, and its runs would go on unseen."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _answer(tasks: Any, answers: Any) -> None:
    opened = Opened()
    while (task := tasks.get()) is not None:
        index, job = task
        try:
            answers.put((index, quietly(job, opened, complain)))
        except Exception as error:
            if not costs_a_sentence(error):
                raise
            answers.put((index, error))  # it ends all runs, and may have come up while this one was told to stop
            return


def quietly(job: Job, opened: Opened, warn: Callable[[str], object]) -> Result:
    last: dict[str, Any] = {}
    with closing(train(job.config, job.out, _pool(job, opened))) as records:
        for last in records:
            if last["kind"] == "warning":
                warn(f"{job.out.name}: {last['message']}")
    result: Result = last["result"]
    return result


def complain(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def scores(result: Result) -> str:
    accuracy = quoted_of(result)
    if accuracy is None:
        return "finished (no test set)"
    return f"accuracy {accuracy:.1f} %, GM {result['gm']:.1f} %"
