"""Write docs/methods.md: every method, what it assumes and costs, its file, the published number and ours.

    python benchmarks/methods.py

The words are in methods.toml; files come from the package, published numbers from the recipes or methods.toml, ours
from records/ and rivals.json.
"""

from __future__ import annotations

import inspect
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cadr.algorithms import ALGORITHMS
from cadr.cli.recipes import Row, read_rows

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.alike import BASELINE, REMARKS, exceptions  # noqa: E402
from benchmarks.cells import EMPTY, Record, fill, markdown, mean_and_sd, power, read_records  # noqa: E402
from benchmarks.compared import COMPARED  # noqa: E402
from benchmarks.digits_table import length as digits_length  # noqa: E402
from benchmarks.digits_table import lengths as digits_lengths  # noqa: E402
from benchmarks.digits_table import relative  # noqa: E402
from benchmarks.explain import explain  # noqa: E402

from benchmarks import results  # noqa: E402

WORDS = ROOT / "benchmarks" / "methods.toml"
PAGE = ROOT / "docs" / "methods.md"
SETTING = "γ = 50"  # of the digits

INTRO = """# Methods

All methods run in the one loop: `cadr train DATA --algorithm NAME`. Each is one file under
[`src/cadr/algorithms/`](../src/cadr/algorithms), tested against an oracle of its own. This page is written by
`python benchmarks/methods.py`.
"""

ASSUMED = """## What they assume and cost

*Cost* is processor time of a step over FixMatch's, on digits and one CPU core, where the network is so small that the
method itself shows; with a large network the differences shrink to *images*: how many a step passes through the
network, over FixMatch's. All see four unlabelled rows for each labelled one there. The recipes for CIFAR-10 give the
Π-model, MixMatch and ReMixMatch one, and FixMatch and the others seven.
"""

ACCURACY = """## How accurate they are

Accuracies in %; a column has one length, because a shorter run is no answer to a longer one.

- *Published* and *ours* are on CIFAR-10, γ = 50, where 143 of 50,000 images keep their label. Ours have the same
  labels, network, kinds of views, optimiser and batches, but for these:
  {exceptions}.
  {remarks}
- *Digits* are mean ± standard deviation over the seeds, at γ = 50; the whole table, and its settings, stand in
  [RESULTS.md](../benchmarks/RESULTS.md). Runs are short there: FreeMatch and SoftMatch average with a momentum of
  0.99 (published: 0.999).
"""


def page(words: dict[str, Any], rows: Sequence[Row], records: Sequence[Record], rivals: Record) -> str:
    above = ACCURACY.format(exceptions=exceptions(rows), remarks=REMARKS)
    parts = [INTRO, ASSUMED, _assumed(words, rivals), above, _accuracy(words, rows, records, rivals)]
    return "\n".join(parts) + "\n"


def _assumed(words: dict[str, Any], rivals: Record) -> str:
    header = ["method", "`--algorithm`", "paper", "year", "assumes of the missing labels", "a step adds", "cost"]
    lines = []
    for name, kind in ALGORITHMS.items():
        about, label, file = words[name], _label(name, rivals), Path(inspect.getfile(kind)).name
        lines.append(
            [
                about["name"],
                f"`{name}`",
                about["paper"],
                str(about.get("year", EMPTY)),
                about["assumes"],
                about["adds"],
                relative(rivals, "ms_per_step", label),
                relative(rivals, "examples_per_step", label),
                f"[{file}](../src/cadr/algorithms/{file})",
            ]
        )
    return markdown([*header, "images", "file"], lines) + "\n"


def _accuracy(words: dict[str, Any], rows: Sequence[Row], records: Sequence[Record], rivals: Record) -> str:
    by_name = {row.name: row for row in rows}
    published = {name: _published(words[name], by_name[_row(name)]) for name in ALGORITHMS}
    lengths = sorted({steps for steps, _ in published.values() if steps})
    ours = sorted({COMPARED, by_name[BASELINE].values["steps"]})
    cells = fill(records)
    digits = digits_lengths(rivals) if rivals else []
    header = ["method", "`--algorithm`"]
    header += [f"published, {power(steps)} steps" for steps in lengths]
    header += [f"ours, {power(steps)} steps" for steps in ours]
    header += [f"digits, {power(steps)} steps" for steps in digits]
    lines = []
    for name in ALGORITHMS:
        line = [words[name]["name"], f"`{name}`"]
        line += [published[name][1] if published[name][0] == steps else EMPTY for steps in lengths]
        line += [cell.text() if (cell := cells.get((_row(name), steps))) else EMPTY for steps in ours]
        lines.append([*line, *(_digits(name, rivals, steps) for steps in digits)])
    return markdown(header, lines)


def _row(name: str) -> str:
    """The recipe's row that is the plain method on the paper's setting."""
    return f"cifar10-gamma50-{name.replace('_', '-')}"


def _published(about: dict[str, Any], row: Row) -> tuple[int | None, str]:
    """At how many steps, and what: by the paper's tables, or as the method's own paper says."""
    if row.published is not None:
        return row.values["steps"], f"{row.published:.2f}"
    return about.get("published_steps"), about.get("published", EMPTY)


def _label(name: str, rivals: Record) -> str | None:
    """The first row of the digits table that is this algorithm: its plain form."""
    return next((label for label, row in rivals.get("rows", {}).items() if row["algorithm"] == name), None)


def _digits(name: str, rivals: Record, steps: int) -> str:
    label = _label(name, rivals)
    cell = rivals["cells"].get(SETTING, {}).get(label)
    if label is None or cell is None or digits_length(rivals, label) != steps:
        return EMPTY
    return f"{mean_and_sd(cell['accuracy'])} (n = {len(cell['accuracy'])})"


def main() -> int:
    explain(__doc__)
    rivals = json.loads(results.RIVALS.read_text(encoding="utf-8")) if results.RIVALS.exists() else {}
    words = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    rows = read_rows(results.RECIPE) + read_rows(results.SUCCESSORS)
    PAGE.write_text(page(words, rows, read_records(results.RECORDS), rivals), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
