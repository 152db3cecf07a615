"""Every method on CIFAR-10, γ = 50, at one short length, the best first."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.alike import BASELINE, REMARKS, exceptions, methods, short
from benchmarks.cells import EMPTY, Cell, Cells, hardware, markdown, mean_and_sd, minutes, power

from cadr.cli.recipe_file import Row

COMPARED = 2**15  # steps at which all methods meet


def compared(rows: Sequence[Row], cells: Cells) -> str:
    """Every method on one setting at one short length, the best first; those without a record are named."""
    base = cells.get((BASELINE, COMPARED))
    names = {row.name: short(row) for row in methods(rows)}
    done = {name: cells[name, COMPARED] for name in names if (name, COMPARED) in cells}
    lines = []
    for name, cell in sorted(done.items(), key=lambda item: -statistics.fmean(item[1].accuracies)):
        rarest = [statistics.fmean(r["recall"][c] for r in cell.records) for c in (-2, -1)]
        comparable = base is not None and _abreast(cell) == _abreast(base)
        cost = f"{_mean(cell, 'ms_per_step') / _mean(base, 'ms_per_step'):.2f}×" if base and comparable else EMPTY
        lines.append(
            [
                names[name],
                f"**{mean_and_sd(cell.accuracies)}** (n = {len(cell.records)})",
                mean_and_sd([r["gm"] for r in cell.records]),
                " and ".join(f"{recall:.1f}" for recall in rarest),
                minutes(cell.records),
                cost,
                hardware(cell.records),
            ]
        )
    header = ["row", "accuracy", "GM", "recall, two rarest classes", "minutes", "a step, FixMatch's = 1", "hardware"]
    text = (
        f"## Every method, CIFAR-10, γ = 50, {power(COMPARED)} steps\n\n"
        "All with the same labels, network, kinds of views, optimiser, batches and steps, but for these: "
        f"{exceptions(rows)}. Options are the published ones, but for what a row's name says. {REMARKS} A step's time "
        "is compared only where as many runs went abreast as with FixMatch."
    )
    missing = ", ".join(names[name] for name in names if name not in done)
    parts = [text, markdown(header, lines) if lines else "None has been run yet."]
    return "\n\n".join([*parts, *[f"Not run yet at this length: {missing}."] * bool(missing)])


def _abreast(cell: Cell) -> set[int]:
    return {r.get("abreast", 1) for r in cell.records}


def _mean(cell: Cell, key: str) -> float:
    return statistics.fmean(r[key] for r in cell.records)
