"""Why the default of CADRClassifier loses to balanced logistic regression on people's own data: causes and their size.

    python benchmarks/own_data_causes.py        # writes own_data_causes.jsonl and .md; stop it when you like

One thing at a time is changed in today's default, on the same draws of sets that decide (own/sets.py), labels missing
by class. A cause's size is the mean difference to the default, draw by draw, with its standard error over the draws.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from benchmarks.cells import markdown  # noqa: E402
from benchmarks.own.methods import METHODS, Probabilities, Task  # noqa: E402
from benchmarks.own.missing import MISSINGNESS  # noqa: E402
from benchmarks.own.scores import scores  # noqa: E402
from benchmarks.own.sets import CACHE, kind_of  # noqa: E402
from benchmarks.own_data import in_turn, one_thread, read, task_of  # noqa: E402  (sets the threads, so first)
from numpy.typing import NDArray  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from cadr.classifier import CADRClassifier  # noqa: E402

RECORD = Path(__file__).with_suffix(".jsonl")
SETS = ("mini_imagenet_things", "docstrings", "digits", "credit", "penguins")
SEEDS = (1, 2, 3)
DEFAULT, SEEDS_APART = "default", ("default, seed + 100", "default, seed + 200")
Record = dict[str, Any]


class Draw(NamedTuple):
    set: str
    missing: str
    seed: int
    cache: Path
    wanted: tuple[str, ...]  # variants that are not recorded yet


class Seen(NamedTuple):
    """What a variant may be told beyond the task: the truth, and what the default chose."""

    task: Task
    shares: NDArray[np.float64]  # of the classes, of all rows
    steps: int


Variant = Callable[[Seen], Probabilities]


def _cadr(algorithm: str = "cadr", apart: int = 0, **changed: Any) -> Variant:
    names = {"validation", "lr", "steps"}

    def variant(seen: Seen) -> Probabilities:
        task = seen.task
        given = {name: value(seen) if callable(value) else value for name, value in changed.items()}
        top = {name: given.pop(name) for name in names & given.keys()}
        model = CADRClassifier(algorithm, settings=given, device="cpu", random_state=task.seed + apart, **top)
        return np.asarray(model.fit(task.X, task.y).predict_proba(task.X[task.y < 0]))

    return variant


def _simple(method: str) -> Variant:
    return lambda seen: METHODS[method](seen.task)


def _plain_network(seen: Seen) -> Probabilities:
    """The same widths without batch norm, by Adam, as scikit-learn has it."""
    task = seen.task
    known = task.y >= 0
    network = MLPClassifier((128, 128), max_iter=500, random_state=task.seed)
    return np.asarray(
        make_pipeline(StandardScaler(), network).fit(task.X[known], task.y[known]).predict_proba(task.X[~known])
    )


def _true(seen: Seen) -> tuple[float, ...]:
    return tuple(seen.shares.tolist())


def _equal(seen: Seen) -> tuple[float, ...]:
    return (1.0,) * seen.task.classes


VARIANTS: dict[str, dict[str, Variant]] = {
    "the network, on the labelled rows alone": {
        "supervised, the same network": _cadr("supervised"),
        "supervised, no hidden layer": _cadr("supervised", hidden=()),
        "network without batch norm (MLPClassifier)": _plain_network,
        "logistic regression": _simple("logistic"),
        "logistic regression, balanced": _simple("logistic_balanced"),
        "logistic regression, balanced, C = 0.01": _simple("logistic_balanced_0.01"),
        "re-sampled labels, the same network": _cadr("resampling"),
    },
    "the network, in CADR": {
        "no hidden layer": _cadr(hidden=()),
        "no hidden layer, cap_cai": _cadr("cap_cai", hidden=()),
    },
    "views": {
        "weak views without noise": _cadr(weak_noise=0.0),
        "strong views like weak ones": _cadr(noise=0.05, dropout=0.0, mixing=0.0),
        "strong views with half of the features": _cadr(dropout=0.5),
    },
    "target shares": {
        "told the true shares": _cadr(target_prior=_true),
        "told equal shares": _cadr(target_prior=_equal),
    },
    "the supplement": {
        "without it (cap_cai)": _cadr("cap_cai"),
        "without it, told the true shares": _cadr("cap_cai", target_prior=_true),
        "re-sampled labels (cadr_resampling)": _cadr("cadr_resampling"),
        "FixMatch": _cadr("fixmatch"),
    },
    "steps and learning rate": {
        "a quarter of the steps": _cadr(steps=lambda seen: max(100, seen.steps // 4)),
        "twice the steps": _cadr(steps=lambda seen: 2 * seen.steps),
        "learning rate 0.01": _cadr(lr=0.01),
        "weight decay 0.01": _cadr(weight_decay=0.01),
    },
    "held-out labels": {"a fifth of them, as cadr train does": _cadr(validation=0.2)},
    "the seed": {name: _cadr(apart=100 * i) for i, name in enumerate(SEEDS_APART, 1)},
}
ALL: dict[str, Variant] = {DEFAULT: _cadr()} | {name: v for group in VARIANTS.values() for name, v in group.items()}


def of_draw(draw: Draw) -> list[Record]:
    """The variants of one draw, the default first, whose steps others are multiples of."""
    one_thread()
    task, truth, names = task_of(draw.set, draw.missing, draw.seed, draw.cache)
    everything = np.where(task.y >= 0, task.y, 0)
    everything[task.y < 0] = truth
    seen = Seen(task, np.bincount(everything, minlength=len(names)) / len(everything), _steps(task))
    found = []
    for name in draw.wanted:
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            probabilities = ALL[name](seen)
        facts = {"set": draw.set, "missing": draw.missing, "seed": draw.seed, "variant": name}
        result = scores(probabilities, truth, len(names))
        found.append(facts | result | {"seconds": round(time.process_time() - begun, 1)})
    return found


def _steps(task: Task) -> int:
    """What the default chooses for so many rows."""
    from cadr.data.pool import Pool
    from cadr.training.plan import plan

    pool = Pool(task.X, task.y, tuple(map(str, range(task.classes))), "X")
    return int(plan({"algorithm": "fixmatch", "data": "X", "device": "cpu"}, pool).config.training.steps)


def build(records: Iterable[Record]) -> str:
    by_draw: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in records:
        by_draw.setdefault((record["set"], record["missing"], record["seed"]), {})[record["variant"]] = record
    draws = {key: of for key, of in by_draw.items() if DEFAULT in of}
    parts = [_about(draws), ""]
    kinds = sorted({kind_of(name) for name, *_ in draws})
    head = ["", "accuracy", "difference", *kinds, *(m.removeprefix("by class, ") for m in MISSINGNESS[:2]), "log loss"]
    lines = [[f"**{DEFAULT}**", _level(draws.values()), "", *[""] * len(kinds), "", "", _loss(draws.values(), DEFAULT)]]
    for group, variants in VARIANTS.items():
        lines.append([f"*{group}*", *[""] * (len(head) - 1)])
        for name in variants:
            there = {key: of for key, of in draws.items() if name in of}
            if not there:
                continue
            by_kind = [_difference([of for key, of in there.items() if kind_of(key[0]) == k], name) for k in kinds]
            by_missing = [_difference([of for key, of in there.items() if key[1] == m], name) for m in MISSINGNESS[:2]]
            level = f"{statistics.fmean(of[name]['accuracy'] for of in there.values()):.1f}"
            everywhere = _difference(list(there.values()), name)
            lines.append([name, level, everywhere, *by_kind, *by_missing, _loss(there.values(), name)])
    return "\n".join([*parts, markdown(head, lines), "", _spread(draws.values())]) + "\n"


def _about(draws: dict[tuple[Any, ...], Any]) -> str:
    sets = ", ".join(sorted({name for name, *_ in draws}))
    return (
        "One change at a time in the default of CADRClassifier: accuracy on the unlabelled rows in points, mean ± "
        f"standard error of the difference to the default over {len(draws)} draws ({sets}), labels missing by class. "
        "Log loss as the probabilities are, and after one temperature. Written by "
        "`python benchmarks/own_data_causes.py`."
    )


def _level(draws: Iterable[dict[str, Record]]) -> str:
    return f"{statistics.fmean(of[DEFAULT]['accuracy'] for of in draws):.1f}"


def _loss(draws: Iterable[dict[str, Record]], name: str) -> str:
    some = [of[name] for of in draws]
    return " / ".join(f"{statistics.fmean(r[what] for r in some):.2f}" for what in ("log_loss", "calibrated"))


def _difference(draws: list[dict[str, Record]], name: str) -> str:
    values = [of[name]["accuracy"] - of[DEFAULT]["accuracy"] for of in draws]
    if not values:
        return "·"
    error = f" ± {statistics.stdev(values) / len(values) ** 0.5:.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):+.1f}{error}"


def _spread(draws: Iterable[dict[str, Record]]) -> str:
    """How far seeds of training alone move the default, on the same labels."""
    names = (DEFAULT, *SEEDS_APART)
    whole = [[of[name]["accuracy"] for name in names] for of in draws if all(name in of for name in names)]
    if not whole:
        return ""
    spread = statistics.fmean(statistics.variance(values) for values in whole) ** 0.5
    widest = max(max(values) - min(values) for values in whole)
    return (
        f"Three seeds of training on the same labels: a standard deviation of {spread:.1f} points, and {widest:.1f} "
        f"between the best and the worst at most, over {len(whole)} draws."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--variants", nargs="+", default=list(ALL), help="by name (default: all)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE, help="the data sets (default: data/own)")
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    records = read(arguments.out)
    done = {(r["set"], r["missing"], r["seed"], r["variant"]) for r in records}
    todo = []
    for seed in arguments.seeds:
        for name in arguments.sets:
            for missing in MISSINGNESS[:2]:
                wanted = tuple(v for v in ALL if v in arguments.variants and (name, missing, seed, v) not in done)
                todo += [Draw(name, missing, seed, arguments.cache, wanted)] * bool(wanted)
    with arguments.out.open("a", encoding="utf-8") as file:
        for i, found in enumerate(in_turn(of_draw, todo, arguments.processes), 1):
            file.writelines(json.dumps(record) + "\n" for record in found)
            file.flush()
            records += found
            print(f"{i} of {len(todo)} draws", flush=True)
    text = build(records)
    arguments.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
