"""Run rows of recipes/hu2022.toml, successors.toml or fast.toml; keep a record per finished run in benchmarks/records/.

    PYTHONPATH=src python3 benchmarks/reproduce.py run cifar10-gamma50-cadr cifar10-gamma50-fixmatch --seeds 1 2 3
    … run cifar10-gamma50-cadr --steps 32768 --form pinv --abreast 4 --minutes 9
    … run fast:cifar10-gamma50-cadr    rows of fast.toml, which are named as those of hu2022.toml
    … run cifar10-gamma50-cadr --seeds 1 2 3 --engine ray --gpus 0.25      in a Ray cluster, so much of a GPU each
    … rest --minutes 25                what benchmarks/plan.txt asks for and has no record, in its order
    … rest --list                      what that is
    … rest --dry                       whether its rows run: two tiny steps of each on the CPU, and no record

Flags it does not know are flags of `cadr train` and override the row; the record says which. A run is a folder under
runs/: what was stopped (by --minutes, Ctrl-C or a lost machine) goes on when the same command is given again, on this
machine or on another one that the folder was carried to. Needs torch, numpy and pillow alone.

At its end RESULTS.md, its figure and docs/methods.md are written anew, if the records lie where these read them and
matplotlib and SciPy are there to do it. Otherwise carry the records home and run figure3.py and results.py.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from cadr.cli.flags import add_engine, engine_gpus
from cadr.cli.main import parser as cadr_parser
from cadr.cli.recipes import read_rows
from cadr.cli.run_flags import Choice, read_flat
from cadr.config import CHANGEABLE
from cadr.errors import CadrError, ConfigError
from cadr.training.signature import FILE as INPUT
from cadr.utils.ray_cluster import cluster, run_tasks

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.dry_run import dry_run  # noqa: E402
from benchmarks.mps import shared_gpu  # noqa: E402
from benchmarks.run_record import path_of, remember_abreast, write_record  # noqa: E402

RECIPES = [ROOT / "recipes" / name for name in ("hu2022.toml", "successors.toml", "fast.toml")]
SHORT = "fast"  # the file whose rows bear its name before their own
RECORDS = ROOT / "benchmarks" / "records"
PLAN = ROOT / "benchmarks" / "plan.txt"
REBUILD = [ROOT / "benchmarks" / name for name in ("figure3.py", "results.py")]
UNFINISHED = 3
# What does not make a run another one; steps and seed are told apart by the record itself.
_NEUTRAL = CHANGEABLE | {"steps", "seed", "views", "log_every", "data"}
_GRACE = 120.0  # seconds that a run gets to save itself


@dataclass(frozen=True, eq=False)
class Job:
    recipe: Path
    row: str
    seed: int
    steps: int | None  # None: as many as go into the minutes of the row
    overrides: dict[str, Any]
    flags: tuple[str, ...]
    minutes: float = 0.0  # that are left to the machine to fill

    @property
    def name(self) -> str:
        changed = "".join(f"-{key}-{_slug(value)}" for key, value in sorted(self.overrides.items()))
        length = f"minutes{self.minutes:g}" if self.steps is None else f"steps{self.steps}"
        return f"{self.row}{changed}-{length}-seed{self.seed}".replace("_", "-").replace(":", "-")

    def command(self, out: Path) -> list[str]:
        spec = f"{self.recipe}:{self.row.removeprefix(f'{SHORT}:')}"
        return [sys.executable, "-m", "cadr", "train", spec, *self.flags, "--seed", str(self.seed), "--out", str(out)]


def plan(rows: Sequence[str], seeds: Sequence[int], flags: Sequence[str]) -> list[Job]:
    """One job per row and seed, once the flags have been understood: a typing error costs nothing."""
    known = {
        f"{SHORT}:{row.name}" if path.stem == SHORT else row.name: (path, row)
        for path in RECIPES
        for row in read_rows(path)
    }
    jobs = []
    for name in rows:
        if name not in known:
            raise ConfigError(f"there is no row {name!r}; see them with cadr recipes")
        path, row = known[name]
        namespace = cadr_parser("train").parse_args(["train", f"{path}:{row.name}", *flags])
        choice: Choice = namespace.choice
        plain = {f.name: f.default for kind in choice.classes.values() for f in fields(kind)} | row.values
        flat = read_flat(namespace)
        overrides = {k: v for k, v in flat.items() if k not in _NEUTRAL and plain.get(k) != v}
        length = flat.get("steps"), overrides.pop("minutes", row.values.get("minutes", 0.0))
        jobs += [Job(path, name, seed, length[0], overrides, tuple(flags), length[1]) for seed in seeds]
    return jobs


def read_plan(path: Path) -> list[Job]:
    """The jobs of a file whose lines are what follows `run`."""
    parser = argparse.ArgumentParser(prog=path.name, allow_abbrev=False)
    _add_rows(parser)
    jobs: dict[str, Job] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if words := shlex.split(line, comments=True):
            arguments, flags = parser.parse_known_args(words)
            jobs |= {job.name: job for job in plan(arguments.rows, arguments.seeds, flags)}
    return list(jobs.values())


def show_rest(jobs: Sequence[Job], records: Path) -> None:
    left = [job for job in jobs if not path_of(job.name, records).exists()]
    for job in left:
        length = f"{job.minutes:5g} minutes" if job.steps is None else f"{job.steps:7,} steps"
        print(f"{length}  {job.name}")
    minutes = sum(job.minutes for job in left if job.steps is None)
    more = f" and {minutes:g} minutes" if minutes else ""
    print(f"{len(left)} of {len(jobs)} runs are left, {sum(job.steps or 0 for job in left):,} steps{more}.")


def run_in_ray(jobs: Sequence[Job], runs: Path, records: Path, gpus: float, minutes: float | None) -> int:
    """The same in a Ray cluster, whose machines must find `runs` at the same place; each run has so many GPUs."""

    def train(work: tuple[list[str], str]) -> int:
        """In a worker, which need not find this file: a function within another one travels as it is."""
        from cadr.cli.main import main

        arguments, log = work
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as Ray says that a task is no longer wanted
        with open(log, "a") as file, redirect_stdout(file), redirect_stderr(file):  # noqa: PTH123
            return main(arguments)

    runs.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not _recorded(path_of(job.name, records))]
    failed = 0
    with cluster(gpus) as ray:
        there = ray.cluster_resources()
        together = round(1 / gpus) if 0 < gpus < 1 else 1 if gpus else int(there.get("CPU", 1))
        for job in waiting:
            remember_abreast(runs / job.name, min(together, len(waiting)))
        work = [(job.command(runs / job.name)[3:], str(runs / f"{job.name}.log")) for job in waiting]
        try:
            for number, status in run_tasks(ray, train, work, gpus, minutes and 60 * minutes, polite=True):
                job = waiting[number]
                if status == 0:
                    print(f"recorded {write_record(job, runs / job.name, records)}", flush=True)
                else:
                    failed += 1
                    print(f"{job.name} ended with status {status}: see {work[number][1]}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("Stopped and saved. The same command continues.", file=sys.stderr)
            return UNFINISHED
    return 1 if failed else 0


def run(jobs: Sequence[Job], runs: Path, records: Path, abreast: int, minutes: float | None) -> int:
    """Bring every job to its end, `abreast` at a time; returns 0 when all have their record."""
    with shared_gpu(abreast) as environment:
        return _run(jobs, runs, records, abreast, minutes, environment)


def _run(
    jobs: Sequence[Job], runs: Path, records: Path, abreast: int, minutes: float | None, environment: dict[str, str]
) -> int:
    deadline = time.monotonic() + 60 * minutes if minutes else float("inf")
    waiting = [job for job in jobs if not _recorded(path_of(job.name, records))]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    begun: dict[Job, float] = {}
    whole: dict[Job, bool] = {}  # nothing of it was there before
    together = min(abreast, len(waiting))
    failed: list[Job] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while waiting or running:
            # One after another: while a run starts, which takes a while, the others have the GPU to themselves.
            while waiting and len(running) < abreast and all(_trains(runs / job.name, begun[job]) for job in running):
                job = waiting.pop(0)
                begun[job] = time.time()
                whole[job] = not (runs / job.name).exists()
                remember_abreast(runs / job.name, together)
                running[job] = _start(job, runs, environment, share=abreast > 1)
            for job, process in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    if process.returncode == 0:
                        wall = time.time() - begun[job] if whole[job] else None
                        print(f"recorded {write_record(job, runs / job.name, records, wall)}", flush=True)
                    else:
                        failed.append(job)
                        print(f"{job.name} ended with status {process.returncode}", file=sys.stderr, flush=True)
            if time.monotonic() > deadline:
                raise KeyboardInterrupt
            time.sleep(0.2)
    except KeyboardInterrupt:
        _stop(running.values())
        left = ", ".join(job.name for job in [*running, *waiting])
        print(f"Stopped and saved; still to do: {left}. The same command continues.", file=sys.stderr)
        return UNFINISHED
    return 1 if failed else 0


def _recorded(path: Path) -> bool:
    if path.exists():
        print(f"{path} is there already", flush=True)
    return path.exists()


def _start(job: Job, runs: Path, environment: dict[str, str], share: bool) -> subprocess.Popen[bytes]:
    runs.mkdir(parents=True, exist_ok=True)
    output: IO[bytes] | None = None
    if share:
        log = runs / f"{job.name}.log"
        output = log.open("ab")
        print(f"{job.name}: output in {log}", flush=True)
    try:
        # A session of its own: Ctrl-C reaches this process alone, which then asks each run once to save itself.
        return subprocess.Popen(
            job.command(runs / job.name),
            env=os.environ | environment | _with_sources(),
            stdout=output,
            stderr=subprocess.STDOUT if share else None,
            start_new_session=True,
        )
    finally:
        if output is not None:
            output.close()


def _trains(out: Path, begun: float) -> bool:
    """Whether the run that was begun then has taken its first steps.

    Before them it puts its old records in order, if only none, and describes its input. Then it says something.
    """
    described, said = out / INPUT, out / "metrics.jsonl"
    if not (described.exists() and said.exists()):
        return False
    return described.stat().st_mtime >= begun and said.stat().st_mtime_ns > described.stat().st_mtime_ns


def _with_sources() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])}


def _stop(processes: Any) -> None:
    for process in processes:
        process.terminate()  # `cadr train` saves on it; Ctrl-C is ignored by what a script started in the background
    end = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def rebuild() -> None:
    """RESULTS.md, its figure and docs/methods.md, from all records."""
    missing = [name for name in ("matplotlib", "scipy") if find_spec(name) is None]
    if missing:
        print(f"RESULTS.md is as it was: {' and '.join(missing)} not installed here.", file=sys.stderr)
        return
    for script in REBUILD:
        subprocess.run([sys.executable, str(script)], env=os.environ | _with_sources())


def _slug(value: Any) -> str:
    text = re.sub(r"[^0-9A-Za-z.]+", "-", str(value)).strip("-")
    return text if len(text) <= 30 else hashlib.sha256(text.encode()).hexdigest()[:8]


def _add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rows", nargs="+", metavar="ROW")
    parser.add_argument("--seed", "--seeds", dest="seeds", nargs="+", type=int, default=[1], metavar="N")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="run | rest", dest="command")
    some = commands.add_parser("run", allow_abbrev=False)
    _add_rows(some)
    rest = commands.add_parser("rest", allow_abbrev=False)
    rest.add_argument("--plan", type=Path, default=PLAN, metavar="FILE", help="default: benchmarks/plan.txt")
    rest.add_argument("--list", action="store_true", help="say what is left, and run nothing")
    rest.add_argument("--dry", action="store_true", help="two tiny steps of every row on the CPU, and no record")
    for command in (some, rest):
        command.add_argument("--abreast", type=int, default=1, metavar="K", help="runs at the same time (default: 1)")
        add_engine(command, "train")
        command.add_argument("--minutes", type=float, metavar="M", help="stop and save after so long")
        command.add_argument("--runs", type=Path, default=ROOT / "runs", metavar="FOLDER")
        command.add_argument("--records", type=Path, default=RECORDS, metavar="FOLDER")
    arguments, flags = parser.parse_known_args(argv)
    if arguments.command == "rest" and flags:
        parser.error(f"rest takes its runs from a file, and no {flags[0]}")
    try:
        if arguments.command == "run":
            jobs = plan(arguments.rows, arguments.seeds, flags)
        else:
            jobs = read_plan(arguments.plan)
            if arguments.list:
                show_rest(jobs, arguments.records)
                return 0
            if arguments.dry:
                return dry_run(jobs)
        runs, records, gpus = arguments.runs, arguments.records, engine_gpus(arguments)
        if gpus is None:
            status = run(jobs, runs, records, max(1, arguments.abreast), arguments.minutes)
        elif arguments.abreast > 1:
            raise ConfigError("--engine ray runs as many at the same time as there is room for; leave out --abreast")
        else:
            status = run_in_ray(jobs, runs.resolve(), records, gpus, arguments.minutes)
    except CadrError as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 2
    if arguments.records.resolve() == RECORDS:
        rebuild()
    return status


if __name__ == "__main__":
    sys.exit(main())
