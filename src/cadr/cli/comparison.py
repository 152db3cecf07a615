"""Several methods over several seeds: the table at the end, and the sentence that says what it means."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from cadr.train.result import quoted_of

Results = Mapping[str, Sequence[dict[str, Any]]]
"""Method -> its results (result.json), one per seed, in the same order of seeds for every method."""

NAMES = {"supervised": "Supervised", "fixmatch": "FixMatch", "cap": "CAP", "cai": "CAI", "cap_cai": "CAP+CAI"}
NAMES["cadr"] = "CADR"
COLUMNS = ("method", "accuracy, %", "geometric mean, %", "weakest class, %", "seeds above", "seconds a run")


def table(results: Results, baseline: str) -> tuple[list[str], list[list[str]]]:
    """Mean ± sample standard deviation, and in how many seeds a method beats the baseline on the same split."""
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
    return columns, lines


def meaning(results: Results, baseline: str) -> str:
    """What the table says, computed from it: who is best, by how much and how surely each differs from the baseline."""
    n = len(results[baseline])
    means = {method: statistics.fmean(accuracy(r) for r in runs) for method, runs in results.items()}
    highest = max(means.values())
    best = [method for method in means if _shown(means[method]) == _shown(highest)]
    over = f"over {n} seeds" if n > 1 else "in one seed, which proves little"
    sentences = [f"Highest accuracy {over}: {' and '.join(map(name, best))} with {_shown(highest)} %."]
    for method in results:
        if method != baseline:
            sentences.append(_against(results, method, baseline))
    if "cadr" in means and "cadr" not in best:
        sentences.append(
            f"CADR is not the best here: {name(best[0])} is {_shown(highest - means['cadr'])} points above it."
        )
    return " ".join(sentences)


def _against(results: Results, method: str, baseline: str) -> str:
    gaps = differences(results, method, baseline)
    mean, wins, n = statistics.fmean(gaps), sum(g > 0 for g in gaps), len(gaps)
    gm = statistics.fmean(r["gm"] for r in results[method]) - statistics.fmean(r["gm"] for r in results[baseline])
    seeds = f" (above it in {wins} of {n} seeds)" if n > 1 else ""
    points = "as good as" if _level(mean) else f"{_shown(abs(mean))} points {'above' if mean > 0 else 'below'}"
    more = "the same" if _level(gm) else f"{_shown(abs(gm))} {'more' if gm > 0 else 'less'}"
    return f"{name(method)} is {points} {name(baseline)}{seeds}, {more} in geometric mean."


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
