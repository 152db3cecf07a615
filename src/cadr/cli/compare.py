"""`cadr compare DATA`: several algorithms over several seeds on the same splits, and a table at the end.

Every run is a run folder of its own, so a comparison that was stopped goes on where it was, and adding a seed or an
algorithm runs only what is missing.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cadr.cli.flags import add_engine, count, engine_gpus

if TYPE_CHECKING:
    from cadr.cli.main import Parser, Subparsers
    from cadr.cli.run_flags import Choice
    from cadr.training.plan import Opened, Plan

ALGORITHMS = ("fixmatch", "cadr")  # on benchmarks
ON_PICTURES = ("fixmatch", "cap_cai", "cadr")  # of one's own, and wherever a network is asked for
ON_FEATURES = ("logistic", "forest", "propagation", "ensemble")  # simple ones first: all are judged on the same labels


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "compare",
        usage="cadr compare DATA [--algorithms NAME ...] [--seeds N] [--processes N] [--out FOLDER] [flags]",
        help="compare algorithms over several seeds",
        description="Train several algorithms on the same data with the same seeds, and compare them: accuracy and "
        "geometric mean over the classes, mean ± sample standard deviation. A flag of an algorithm applies to every "
        "chosen algorithm that has it; a line names the others. The same command after a stop continues.",
    )
    parser.add_argument("data", metavar="DATA", help="what to learn from, or a recipe")
    parser.add_argument(
        "--algorithms",
        nargs="+",
        metavar="NAME",
        help=f"methods to compare; the first is the baseline (default: {' '.join(ALGORITHMS)}; on features of your own "
        f"the simple ones and the default, {' '.join(ON_FEATURES)}; on your own pictures {' '.join(ON_PICTURES)})",
    )
    parser.add_argument(
        "--seeds", type=count, default=3, metavar="N", help="how many seeds, counted from --seed on (default: 3)"
    )
    parser.add_argument(
        "--processes", type=count, default=1, metavar="N", help="runs at the same time, one thread each (default: 1)"
    )
    add_engine(parser, "train")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where the run folders go (default: runs/compare-DATA)"
    )
    parser.prepare = _prepare
    parser.set_defaults(run=run)


def _prepare(parser: Parser, arguments: list[str]) -> None:
    """The flags of the shared parts, and those of all chosen algorithms together."""
    from dataclasses import fields

    from cadr.cli.flags import add_flags
    from cadr.cli.run_flags import add_choices, add_part_flags, choose

    choice = choose(arguments)
    default = _default(arguments, choice)
    choice.named.pop("algorithm", None)
    choice.classes.pop("algorithm", None)
    add_choices(parser, skip=("algorithm",))
    group = parser.add_argument_group("algorithms")
    seen: set[str] = set()
    for kind in _algorithms(parser, arguments, default).values():
        add_flags(group, kind, choice.recipe, skip=seen)
        seen |= {f.name for f in fields(kind)}
    add_part_flags(parser, choice.classes, choice.recipe)
    parser.set_defaults(choice=choice, algorithms=list(default))


def _default(arguments: list[str], choice: Choice) -> tuple[str, ...]:
    """Whom to compare where nobody says: on features, methods that are fitted in seconds."""
    from cadr.config import OF_NETWORKS, VIEWS
    from cadr.data import BENCHMARKS

    if choice.recipe or any(argument in BENCHMARKS for argument in arguments):
        return ALGORITHMS
    flags = {a.split("=")[0][2:].replace("-", "_").removeprefix("no_") for a in arguments if a.startswith("--")}
    networks = flags & OF_NETWORKS or choice.classes["views"] is not VIEWS["features"]
    return ON_PICTURES if networks else ON_FEATURES


def _algorithms(parser: Parser, arguments: list[str], default: Sequence[str]) -> dict[str, type[Any]]:
    from cadr.cli.main import Parser
    from cadr.config import CHOICES

    first = Parser(prog=parser.prog, add_help=False)
    first.add_argument("--algorithms", nargs="+", default=list(default))
    names = first.parse_known_args(arguments)[0].algorithms
    for name in names:
        if name not in CHOICES["algorithm"]:
            parser.error(f"--algorithms: expected names out of {', '.join(CHOICES['algorithm'])}, got {name!r}")
    return {name: CHOICES["algorithm"][name] for name in names}


def run(namespace: Namespace) -> int:
    from cadr.cli.comparison import OnAllRows, columns, on_all_rows, sentences
    from cadr.cli.main import INTERRUPTED
    from cadr.cli.run_flags import not_concerned, stem
    from cadr.cli.runs import Job, finish
    from cadr.errors import ConfigError
    from cadr.inference.accuracy_notes import caution_about_differences, examples_judged
    from cadr.inference.evaluation import UserLabels
    from cadr.training.plan import Opened

    gpus = engine_gpus(namespace)
    if gpus is not None and namespace.processes > 1:
        raise ConfigError(
            "--engine ray runs as many at the same time as the cluster has room for; leave out --processes"
        )
    plans = read_plans(namespace, opened := Opened())
    told = next((planned.target for _, planned in plans if planned.target is not None), None)
    for words in [*not_concerned(namespace), *(told.sentences() if told else [])]:
        print(words, flush=True)
    folder = namespace.out or Path("runs") / f"compare-{stem(namespace.data)}"
    jobs = [Job(planned.config, folder / f"{name}-seed{planned.config.training.seed}") for name, planned in plans]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name, _ in plans}
    try:
        if gpus is None:
            finished = finish(jobs, min(namespace.processes, len(jobs)), opened)
        else:
            from cadr.cli.ray_runs import finish_in_ray

            finished = finish_in_ray(jobs, gpus)
    except KeyboardInterrupt:
        print(f"Stopped; every run so far is saved in {folder}. The same command continues.", file=sys.stderr)
        return INTERRUPTED
    for (name, _), result in zip(plans, finished, strict=True):
        results[name].append(result)
    _check_judged(finished)
    evaluated = [
        (name, examples_judged(job.out), result["evaluated_on"])
        for (name, _), job, result in zip(plans, jobs, finished, strict=True)
    ]
    judged = min(examples for _, examples, _ in evaluated)  # where they differ, the fewest decide what can be told
    found: dict[str, list[OnAllRows]] = {}
    labels = UserLabels.of(plans[0][1].config, plans[0][1].pool, None if told is None else told.diagnosis)
    for (name, _), one in zip(plans, on_all_rows(labels, jobs), strict=False):  # of benchmarks there is nothing
        found.setdefault(name, []).append(one)
    show(results, next(iter(results)), judged, columns(found))
    for words in (*sentences(found), caution_about_differences(evaluated)):
        if words:
            print(words)
    return 0


def _check_judged(finished: Sequence[dict[str, Any]]) -> None:
    from cadr.errors import DataError

    if any(result["median_10"] is None for result in finished):
        raise DataError("the data has no test set, so that accuracies cannot be compared; the runs are kept")


def read_plans(namespace: Namespace, opened: Opened) -> list[tuple[str, Plan]]:
    """A run per algorithm and seed; each algorithm takes the flags and recipe values that it has."""
    from dataclasses import fields

    from cadr.cli.recipes import is_recipe
    from cadr.cli.run_flags import read_flat, told
    from cadr.config import CHOICES, Training
    from cadr.training.plan import plan

    flat = read_flat(namespace)
    first = flat.get("seed", Training.seed)
    owned = {f.name for kind in CHOICES["algorithm"].values() for f in fields(kind)}
    shared = {key: value for key, value in flat.items() if key not in owned}
    return [
        (name, plan({**shared, **own, "algorithm": name, "seed": seed}, opened, recipe=is_recipe(namespace.data)))
        for name, own in told(namespace).items()
        for seed in range(first, first + namespace.seeds)
    ]


def show(
    results: dict[str, list[dict[str, Any]]],
    baseline: str,
    judged: int = 0,
    more: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> None:
    """The table, with `more` columns, and what it means; every run is judged on so many examples, if that is known."""
    from cadr.cli.comparison import meaning, table
    from cadr.cli.terminal import show_table
    from cadr.inference.accuracy_notes import zero_recall

    columns, lines = table(results, baseline, more)
    n, steps = len(results[baseline]), results[baseline][0]["steps"]
    over = f"mean ± standard deviation over {n} seeds" if n > 1 else "one seed"
    print()
    instant = all(result.get("ms_per_step", 0) is None for runs in results.values() for result in runs)
    show_table(columns, lines, title=f"Fitted in one go, {over}" if instant else f"After {steps:,} steps, {over}")
    print()
    lost = (zero_recall(result["recall"]) for runs in results.values() for result in runs)
    print(" ".join(filter(None, (meaning(results, baseline, judged), next(filter(None, lost), "")))))
