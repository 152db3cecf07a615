"""Runs of a few minutes, by setting, method and length: every seed counts, the worst one most."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.cells import EMPTY, Record, markdown, mean_and_sd, power
from benchmarks.matched import accuracy, matched_accuracy

PREFIX = "fast:"
LOST = 10.0  # percent: a class of which less is recognised is lost
EXCHANGED = 1.0  # points that matched names add


def keeps_its_classes(record: Record) -> bool:
    """Whether every class is found and bears its own name."""
    confusion = record["confusion"]
    return min(record["recall"]) >= LOST and matched_accuracy(confusion) <= accuracy(confusion) + EXCHANGED


def short_runs(records: Sequence[Record]) -> str:
    """The table, with SGD's runs of the same settings and lengths; nothing where no short run has a record."""
    ours = [r for r in records if r.get("row", "").startswith(PREFIX)]
    if not ours:
        return ""
    rows, lengths = {r["row"].removeprefix(PREFIX) for r in ours}, {r["steps"] for r in ours}
    beside = [r for r in records if r.get("row") in rows and r["steps"] in lengths and not r["overrides"]]
    groups: dict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
    for r in [*ours, *beside]:
        changed = ", ".join(f"{k} = {v}" for k, v in r["overrides"].items())
        length = f"{r['minutes']:g} minutes" if r.get("minutes") else f"{power(r['steps'])} steps"
        optimiser = "Muon" if r["row"].startswith(PREFIX) else "SGD"
        groups[r["row"].removeprefix(PREFIX), changed, length, optimiser].append(r)
    header = ["row", "changed", "length", "optimiser", "n", "accuracy", "worst", "keeps its classes", "wall clock, s"]
    lines = []
    for (row, changed, length, optimiser), found in sorted(groups.items()):
        accuracies = [r["median_10"] for r in found]
        wall = [r["wall_seconds"] for r in found if r.get("wall_seconds") and r.get("abreast", 1) == 1]
        lines.append(
            [
                *(row, changed or EMPTY, length, optimiser, str(len(found))),
                *(mean_and_sd(accuracies), f"{min(accuracies):.2f}"),
                f"{sum(map(keeps_its_classes, found))} of {len(found)}",
                f"{statistics.fmean(wall):.0f}" if wall else EMPTY,
            ]
        )
    what = (
        "Accuracies (%) by the rule above, mean ± standard deviation over n seeds, and the worst of them. A draw "
        f"*keeps its classes* where {LOST:g} % of each is recognised and no names are exchanged. Wall clock: start-up "
        "included, of runs that shared the GPU with no other. Rows are in [recipes/fast.toml](../recipes/fast.toml)."
    )
    return f"## Short runs\n\n{what}\n\n{markdown(header, lines)}"
