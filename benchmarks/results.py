"""Rebuild benchmarks/RESULTS.md from records/, rivals.json, elsewhere.toml and recipes/, and from nothing else.

    python benchmarks/results.py

A record fills the cell of its recipe row when nothing but seed and length was changed; every other record is listed as
a variant. Runs of different lengths stand in different tables. docs/methods.md shows some of the same numbers, and is
written anew with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cadr.cli.recipes import Row, read_rows
from cadr.config import Training

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.alike import BASELINE  # noqa: E402
from benchmarks.cells import (  # noqa: E402
    EMPTY,
    Cell,
    Cells,
    Record,
    fill,
    hardware,
    minutes,
    power,
    read_records,
)
from benchmarks.compared import compared  # noqa: E402
from benchmarks.digits_table import digits  # noqa: E402
from benchmarks.listings import provenance, recalls, variants  # noqa: E402
from benchmarks.matched import accuracy, matched_accuracy  # noqa: E402
from benchmarks.paper_tables import TABLES, column, section, to_show  # noqa: E402
from benchmarks.short_runs import short_runs  # noqa: E402

RECIPE = ROOT / "recipes" / "hu2022.toml"
SUCCESSORS = ROOT / "recipes" / "successors.toml"
RECORDS = ROOT / "benchmarks" / "records"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
FIGURE = ROOT / "benchmarks" / "figure3.svg"
RIVALS = ROOT / "benchmarks" / "rivals.json"
ELSEWHERE = ROOT / "benchmarks" / "elsewhere.toml"
HEADLINE = "cifar10-gamma50-cadr"
EXCHANGED = 1.0  # points that matched names add, where names are exchanged and not just a few images confused


def headline(rows: Sequence[Row], cells: Cells, elsewhere: dict[str, Any]) -> str:
    """The sentence a visitor remembers; said only when its run was made at the published length."""
    by_name = {row.name: row for row in rows}
    row = by_name[HEADLINE]
    steps = row.values["steps"]
    cell, baseline = cells.get((HEADLINE, steps)), cells.get((BASELINE, steps))
    if cell is None:
        return (
            f"The headline run ({HEADLINE}, {power(steps)} steps) has no record yet, so nothing is claimed; "
            "what has been run stands below."
        )
    sentence = (
        f"On {column(row)}, CADR (published with {row.published:.2f} %) reaches {seed_by_seed(cell, bold=True)} "
        f"in **{minutes(cell.records)}** on one {hardware(cell.records)}"
    )
    if baseline is not None:
        published = by_name[BASELINE].published
        sentence += f", FixMatch (published with {published:.2f} %), trained in the same way, {seed_by_seed(baseline)}"
    if elsewhere:
        hours = elsewhere["hours"] * steps / elsewhere["steps"]
        sentence += (
            f"; as many steps of {elsewhere['what']} take {hours:.1f} hours on {elsewhere['hardware']} "
            f"([as its issue tracker says]({elsewhere['source']}))"
        )
    return sentence + "."


def seed_by_seed(cell: Cell, bold: bool = False) -> str:
    """Each seed's accuracy: where classes are found or lost, or called by each other's name, a mean says nothing."""
    said = []
    for record in cell.records:
        figure = f"{record['median_10']:.2f} %"
        aside = f"seed {record['seed']}"
        if (matched := matched_accuracy(record["confusion"])) > accuracy(record["confusion"]) + EXCHANGED:
            aside += f", which swapped classes: {matched:.2f} % if they were matched"
        said.append(f"{f'**{figure}**' if bold else figure} ({aside})")
    return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))


def build(
    rows: Sequence[Row],
    records: Sequence[Record],
    elsewhere: dict[str, Any],
    with_figure: bool,
    rivals: Record | None = None,
) -> str:
    cells = fill(records)
    intro = (
        "Accuracies (%) of ours are the median of the last 10 evaluations of the averaged model on the test set "
        f"({Training.evaluations} in a run; digits say theirs), geometric means and recalls those of the last one, "
        "± the sample standard deviation over n seeds, with steps, mean minutes a run (*alone*: of those runs that "
        "shared the hardware with no other) and hardware beside them; "
        f"{EMPTY} marks a cell that has not been run. The published numbers "
        "are for the published number of steps and most likely one seed. This file is written by "
        "`python benchmarks/results.py` from [records/](records), [rivals.json](rivals.json), "
        "[elsewhere.toml](elsewhere.toml) and [recipes/](../recipes) alone."
    )
    parts = ["# Results", headline(rows, cells, elsewhere), intro]
    if with_figure:
        parts.append("![Convergence and confusion matrices of FixMatch and CADR, as in Figure 3](figure3.svg)")
    parts.append(short_runs(records))
    parts += [section(table, rows, cells) for table in TABLES if to_show(table, rows, cells)]
    parts += [compared(rows, records), recalls(records), digits(rivals or {}), variants(records), provenance(records)]
    return "\n\n".join(part for part in parts if part) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    records = read_records(arguments.records)
    figure = (arguments.out.parent / FIGURE.name).exists()
    rivals = json.loads(RIVALS.read_text(encoding="utf-8")) if RIVALS.exists() else None
    rows = read_rows(RECIPE) + read_rows(SUCCESSORS)
    text = build(rows, records, tomllib.loads(ELSEWHERE.read_text(encoding="utf-8")), figure, rivals)
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{arguments.out}: {len(records)} records")
    if arguments.out == RESULTS:
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / "methods.py")], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
