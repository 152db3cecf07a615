"""Several methods over several seeds: the table at the end, and the sentence that says what it means."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from cadr.cli.runs import Job
from cadr.inference.accuracy_notes import OWN_LABELS, UNKNOWN, last_evaluation
from cadr.inference.evaluation import UserLabels
from cadr.inference.predictor import Predictor
from cadr.training.result import quoted_of

Results = Mapping[str, Sequence[dict[str, Any]]]
"""Method -> its results (result.json), one per seed, in the same order of seeds for every method."""

NAMES = {"supervised": "Supervised", "fixmatch": "FixMatch", "cap": "CAP", "cai": "CAI", "cap_cai": "CAP+CAI"}
NAMES["cadr"] = "CADR"
COLUMNS = ("method", "accuracy, %", "geometric mean, %", "weakest class, %", "seeds above", "seconds a run")


def table(
    results: Results, baseline: str, more: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> tuple[list[str], list[list[str]]]:
    """Mean ± sample standard deviation, and in how many seeds a method beats the baseline on the same split.

    `more` are columns, title -> method -> cell: those in percent stand beside the accuracy, others at the end.
    """
    columns = [c if c != "seeds above" else f"above {name(baseline)} in" for c in COLUMNS]
    lines = []
    for method, runs in results.items():
        wins = sum(d > 0 for d in differences(results, method, baseline))
        lines.append(
            [
                name(method),
                spread([accuracy(r) for r in runs]),
                spread([r["gm"] for r in runs]),
                spread([min(x for x in r["recall"] if x is not None) for r in runs]),
                "–" if method == baseline else f"{wins} of {len(runs)} seeds",
                f"{statistics.fmean(r['seconds'] for r in runs):.1f}",
            ]
        )
    for title, cells in more.items():
        at = 2 if title.endswith("%") else len(columns)
        columns.insert(at, title)
        for method, line in zip(results, lines, strict=True):
            line.insert(at, cells[method])
    return columns, lines


def meaning(results: Results, baseline: str, judged: int = UNKNOWN) -> str:
    """What the table says, computed from it: who is best, by how much and how surely each differs from the baseline.

    Every run is judged on `judged` examples. Labels held out of one's own are few as a rule, and may not tell.
    """
    n = len(results[baseline])
    means = {method: statistics.fmean(accuracy(r) for r in runs) for method, runs in results.items()}
    over = f"over {n} seeds" if n > 1 else "in one seed, which proves little"
    sentences = [f"Highest accuracy {over}: {highest(means)}."]
    held_out = all(r["evaluated_on"] in OWN_LABELS for r in results[baseline])
    if held_out and len(results) > 1 and all(accuracy(r) == 100.0 for runs in results.values() for r in runs):
        return f"{sentences[0]} All get every held-out label right, so these cannot tell the methods apart."
    for method in results:
        if method != baseline:
            sentences.append(_against(results, method, baseline, held_out, judged))
    best = max(means.values())
    if "cadr" in means and _shown(means["cadr"]) != _shown(best):
        first = next(method for method in means if _shown(means[method]) == _shown(best))
        sentences.append(f"CADR is not the best here: {name(first)} is {_shown(best - means['cadr'])} points above it.")
    return " ".join(sentences)


def highest(means: Mapping[str, float]) -> str:
    """Who has the highest figure, as it is shown."""
    best = _shown(max(means.values()))
    return f"{' and '.join(name(method) for method in means if _shown(means[method]) == best)} with {best} %"


def _against(results: Results, method: str, baseline: str, held_out: bool, judged: int) -> str:
    gaps = differences(results, method, baseline)
    mean, wins, n = statistics.fmean(gaps), sum(g > 0 for g in gaps), len(gaps)
    gm = statistics.fmean(r["gm"] for r in results[method]) - statistics.fmean(r["gm"] for r in results[baseline])
    seeds = f" (above it in {wins} of {n} seeds)" if n > 1 else ""
    more = "the same" if _level(gm) else f"{_shown(abs(gm))} {'more' if gm > 0 else 'less'}"
    if held_out and _level(mean):
        them = f"{name(method)} from {name(baseline)}{seeds}"
        return f"The held-out labels cannot tell {them}: it gets as many right, {more} in geometric mean."
    points = "as good as" if _level(mean) else f"{_shown(abs(mean))} points {'above' if mean > 0 else 'below'}"
    sentence = f"{name(method)} is {points} {name(baseline)}{seeds}, {more} in geometric mean."
    less = held_out and abs(mean) * judged < 100.0 and judged != UNKNOWN
    return f"{sentence} That is less than one held-out label, and may be chance." if less else sentence


def _shown(value: float) -> str:
    return f"{value:.1f}"


def _level(difference: float) -> bool:
    """Nobody is above by no points: with a handful of labels to be judged on, ties are common."""
    return _shown(abs(difference)) == "0.0"


def differences(results: Results, method: str, baseline: str) -> list[float]:
    """Accuracy minus the baseline's, seed by seed: both saw the same labels."""
    pairs = zip(results[method], results[baseline], strict=True)
    return [accuracy(mine) - accuracy(other) for mine, other in pairs]


def accuracy(result: dict[str, Any]) -> float:
    found = quoted_of(result)
    assert found is not None  # or `show` has refused
    return found


def spread(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


def name(method: str) -> str:
    return NAMES.get(method, method)


WEIGHTED, OUTSIDE = "weighted, %", "shares outside"
_NAMED = 3  # classes in a cell


class OnAllRows(NamedTuple):
    """Of one run."""

    weighted: float | None  # accuracy by held-out labels, where these were judged
    outside: Sequence[str]  # classes whose predicted shares the diagnosis contradicts


Found = Mapping[str, Sequence[OnAllRows]]
"""Method -> what each of its runs comes to."""


def on_all_rows(labels: UserLabels | None, jobs: Sequence[Job]) -> list[OnAllRows]:
    """Of every run; none where the data are a benchmark's, or nothing can be diagnosed."""
    if labels is None:
        return []
    found = []
    for job in jobs:
        last, predictor = last_evaluation(job.out), Predictor.load(job.out, device=job.config.training.device)
        weighted = None if last is None else labels.weighted(last)
        found.append(OnAllRows(weighted and weighted.accuracy, [one.name for one in labels.outside(predictor)]))
    return found


def columns(found: Found) -> dict[str, dict[str, str]]:
    """Title -> method -> cell; none without anything found."""
    added = {}
    if weighted := _weighted(found):
        added[WEIGHTED] = {method: spread(values) for method, values in weighted.items()}
    if found:
        added[OUTSIDE] = {method: _classes(runs) for method, runs in found.items()}
    return added


def sentences(found: Found) -> list[str]:
    """What these columns mean."""
    said = []
    if weighted := _weighted(found):
        best = highest({method: statistics.fmean(values) for method, values in weighted.items()})
        said.append(
            "Weighted: a held-out label counts 1/propensity, so that classes count as in all rows. Highest there: "
            f"{best}."
        )
    if any(run.outside for runs in found.values() for run in runs):
        seeds = " (in so many seeds)" if max(map(len, found.values())) > 1 else ""
        said.append(
            f"Shares outside: classes{seeds} whose predicted share of the unlabelled rows lies outside what cadr "
            "diagnose estimates; there the model or the estimate is wrong, whatever the held-out labels say."
        )
    return said


def _weighted(found: Found) -> dict[str, list[float]]:
    values = {method: [r.weighted for r in runs if r.weighted is not None] for method, runs in found.items()}
    return values if all(len(values[method]) == len(runs) for method, runs in found.items()) else {}


def _classes(runs: Sequence[OnAllRows]) -> str:
    """The classes contradicted most often first."""
    counts = Counter(called for run in runs for called in run.outside).most_common()
    if not counts:
        return "none"
    named = [repr(called) if len(runs) == 1 else f"{called!r} ({seeds})" for called, seeds in counts[:_NAMED]]
    return ", ".join(named) + (f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else "")
