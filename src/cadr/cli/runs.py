"""Bring several runs to their end, one after another or side by side in processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from cadr.cli.progress import follow
from cadr.cli.train import stop_politely
from cadr.config import Config
from cadr.train import train

Result = dict[str, Any]


class Job(NamedTuple):
    config: Config
    out: Path


def finish(jobs: Sequence[Job], processes: int = 1) -> list[Result]:
    """The results in the order of the jobs; finished ones are read, unfinished ones continued."""
    stop_politely()
    try:
        return _in_turn(jobs) if processes == 1 else _side_by_side(jobs, processes)
    except KeyboardInterrupt:
        print("Stopped; every run so far is saved. The same command continues.", file=sys.stderr)
        raise


def _in_turn(jobs: Sequence[Job]) -> list[Result]:
    results = []
    for number, job in enumerate(jobs, 1):
        label = f"{number}/{len(jobs)} {job.out.name}"
        results.append(follow(train(job.config, job.out), label)["result"])
    return results


def _side_by_side(jobs: Sequence[Job], processes: int) -> list[Result]:
    """Fresh processes that live for many runs each: importing torch costs more than a small run."""
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # read when a process starts: processes, not threads, share the cores
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=context) as pool:
            futures = {pool.submit(_quietly, job): job for job in jobs}
            try:
                for number, future in enumerate(as_completed(futures), 1):
                    result = future.result()
                    where = f"{number}/{len(jobs)} {futures[future].out.name}"
                    print(f"{where}: accuracy {result['median_10']:.1f} %, GM {result['gm']:.1f} %", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return [future.result() for future in futures]
    finally:
        if threads is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = threads


def _quietly(job: Job) -> Result:
    last: dict[str, Any] = {}
    for last in train(job.config, job.out):
        if last["kind"] == "warning":
            print(f"{job.out.name}: {last['message']}", file=sys.stderr, flush=True)
    result: Result = last["result"]
    return result
