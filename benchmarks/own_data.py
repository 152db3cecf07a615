"""Real data of the kinds that people have, labels missing in three ways: our methods beside simple ones.

    python benchmarks/own/sets.py --sources FOLDER      # the data sets first, minutes on two cores
    python benchmarks/own_data.py                       # the sets that decide, every method and seed
    python benchmarks/own_data.py --sets final          # the other half, at the end
    python benchmarks/own_data.py --methods cadr cap_cai --seeds 1 2
    python benchmarks/own_data.py --again cadr          # a method has changed: its records are made anew

A record is a line of own_data.jsonl, written as soon as it is there: stop it when you like, it goes on where it was.
own_data.md has the tables, docs/own-results.md what they come to. Methods stand in own/methods.py, kinds of missingness
in own/missing.py.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))  # before numpy: a processor's seconds are one core's

import numpy as np  # noqa: E402
import torch  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.own.methods import METHODS, NETWORKS, OURS, PENALISED, SIMPLE, Task  # noqa: E402
from benchmarks.own.missing import MISSINGNESS, draw  # noqa: E402
from benchmarks.own.page import write as write_page  # noqa: E402
from benchmarks.own.results import build  # noqa: E402
from benchmarks.own.scores import scores  # noqa: E402
from benchmarks.own.sets import CACHE, DECIDING, FINAL, OwnData, load  # noqa: E402

RECORD = Path(__file__).with_suffix(".jsonl")
SEEDS = (1, 2, 3, 4, 5)
Record = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")


class Job(NamedTuple):
    set: str
    missing: str
    seed: int
    method: str
    cache: Path


@functools.lru_cache(maxsize=2)
def _data(name: str, cache: Path) -> OwnData:
    return load(name, cache)


def task_of(name: str, missing: str, seed: int, cache: Path) -> tuple[Task, NDArray[np.int64], list[str]]:
    """A draw of a set; the classes of its unlabelled rows; the classes' names."""
    data = _data(name, cache)
    rows, labelled = draw(data.name, data.y, missing, seed)
    truth = data.y[rows]
    return Task(data.X[rows], np.where(labelled, truth, -1), len(data.names), seed), truth[~labelled], data.names


def one_thread() -> None:
    torch.set_num_threads(1)


def run(job: Job) -> Record:
    """One method on one draw of a set."""
    one_thread()
    task, truth, names = task_of(job.set, job.missing, job.seed, job.cache)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[job.method](task)
    seconds = time.process_time() - begun
    counts = np.bincount(task.y[task.y >= 0], minlength=len(names))
    return {
        "set": job.set,
        "missing": job.missing,
        "seed": job.seed,
        "method": job.method,
        "labels": int(counts.sum()),
        "ratio": round(float(counts.max() / counts.min()), 1),
        "rows": hashlib.sha256(task.X.tobytes() + task.y.tobytes()).hexdigest()[:8],
        **scores(found, truth, len(names)),
        "seconds": round(seconds, 1),
    }


def jobs(sets: tuple[str, ...], methods: tuple[str, ...], seeds: tuple[int, ...], cache: Path) -> Iterator[Job]:
    """What takes least time first: simple methods, the ensemble, then networks, seed by seed."""
    quick = [name for name in (*SIMPLE, *PENALISED) if name in methods and name != "boosting_balanced"]
    medium = [name for name in methods if name not in (*quick, *NETWORKS)]
    slow = [name for name in methods if name in NETWORKS]
    for some in (quick, medium, slow):
        for seed in seeds:
            for name in sets:
                yield from (Job(name, missing, seed, method, cache) for missing in MISSINGNESS for method in some)


def in_turn(work: Callable[[T], R], todo: Sequence[T], processes: int) -> Iterator[R]:
    """What the work makes of each, as soon as it is there."""
    if processes == 1:
        yield from map(work, todo)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as workers:
        yield from workers.imap_unordered(work, todo, chunksize=1)


def key(record: Record) -> tuple[Any, ...]:
    return record["set"], record["missing"], record["seed"], record["method"]


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def write(path: Path, records: list[Record]) -> None:
    """In a fixed order, so that a continued record differs only where something was added."""
    order = {name: i for i, name in enumerate((*DECIDING, *FINAL))}
    ranked = sorted(records, key=lambda r: (order[r["set"]], MISSINGNESS.index(r["missing"]), r["method"], r["seed"]))
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(record) + "\n" for record in ranked), encoding="utf-8")
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["deciding"], help="deciding, final, or names (default: deciding)")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="or simple, penalised, ours (default: all)")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), help="default: 1 to 5")
    parser.add_argument("--again", nargs="+", default=[], metavar="METHOD", help="forget what is recorded of these")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE, help="the data sets (default: data/own)")
    parser.add_argument("--out", type=Path, default=RECORD, help="the record; its tables go to a .md beside it")
    parser.add_argument("--only-table", action="store_true", help="run nothing, write the tables")
    arguments = parser.parse_args()
    groups = {"simple": SIMPLE, "penalised": PENALISED, "ours": OURS}
    methods = tuple(name for given in arguments.methods for name in groups.get(given, (given,)))
    halves = {"deciding": DECIDING, "final": FINAL}
    sets = tuple(name for given in arguments.sets for name in halves.get(given, (given,)))
    unknown = (set(methods) | set(arguments.again)) - set(METHODS) | set(sets) - {*DECIDING, *FINAL}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; sets: {', '.join((*DECIDING, *FINAL))}; methods: "
                     f"{', '.join(METHODS)}")  # fmt: skip
    records = [record for record in read(arguments.out) if record["method"] not in arguments.again]
    if arguments.again:
        write(arguments.out, records)
    if not arguments.only_table:
        done = {key(record) for record in records}
        todo = [job for job in jobs(sets, methods, tuple(arguments.seeds), arguments.cache) if job[:4] not in done]
        with arguments.out.open("a", encoding="utf-8") as file:
            for i, record in enumerate(in_turn(run, todo, arguments.processes), 1):
                file.write(json.dumps(record) + "\n")
                file.flush()
                records.append(record)
                what = " ".join(map(str, key(record)))
                print(f"{i} of {len(todo)}: {what}: {record['accuracy']} %, {record['seconds']} s", flush=True)
    write(arguments.out, records)
    text = build(records, "python benchmarks/own_data.py")
    arguments.out.with_suffix(".md").write_text(text, encoding="utf-8")
    if arguments.out == RECORD:
        write_page(ROOT, records)
    print(text)


if __name__ == "__main__":
    main()
