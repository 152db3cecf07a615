"""Write docs/methods.md: every method, what it assumes and costs, its file, the published number and ours.

    python benchmarks/methods.py

The words are in methods.toml; files come from the package, published numbers from the recipe, ours from records/ and
rivals.json.
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
from cadr.cli.recipe_file import read_rows

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import EMPTY, markdown, mean_and_sd, power, read_records  # noqa: E402
from benchmarks.digits_table import relative  # noqa: E402

from benchmarks import results  # noqa: E402

WORDS = ROOT / "benchmarks" / "methods.toml"
PAGE = ROOT / "docs" / "methods.md"
SETTING = "γ = 50"  # of the digits

INTRO = """# Methods

All methods run in the one loop, on the same views, network, optimiser and batches; `cadr train DATA --algorithm NAME`.
Each is one file under [`src/cadr/algorithms/`](../src/cadr/algorithms), tested against an oracle of its own.

- *Cost* is processor time of a step over FixMatch's, on digits and one CPU core, where the network is so small that the
  method itself shows; with a real network the differences shrink to *images*: how many a step passes through the
  network, over FixMatch's.
- *Published* and *ours* are accuracies (%) on CIFAR-10, γ = 50, where 143 of 50,000 images keep their label; published
  at 2^17 steps unless said. Ours says its steps: a shorter run is no answer to a longer one.
- *Digits* are accuracies (%), mean ± standard deviation over the seeds, at γ = 50; the whole table, and its settings,
  stand in [RESULTS.md](../benchmarks/RESULTS.md).

This page is written by `python benchmarks/methods.py`.
"""


def page(words: dict[str, Any], rows: Sequence[Any], records: Sequence[Any], rivals: dict[str, Any]) -> str:
    published = {row.name: row.published for row in rows if row.published is not None}
    header = [
        "method",
        "`--algorithm`",
        "paper",
        "year",
        "assumes of the missing labels",
        "a step adds",
        "cost",
        "images",
        "file",
    ]
    header += ["published", "ours", "digits"]
    lines = []
    for name, kind in ALGORITHMS.items():
        about = words[name]
        file = Path(inspect.getfile(kind)).name
        known = published.get(f"cifar10-gamma50-{name.replace('_', '-')}")
        lines.append(
            [
                about["name"],
                f"`{name}`",
                about["paper"],
                str(about.get("year", EMPTY)),
                about["assumes"],
                about["adds"],
                relative(rivals, "ms_per_step", label := _label(name, rivals)),
                relative(rivals, "examples_per_step", label),
                f"[{file}](../src/cadr/algorithms/{file})",
                about.get("published") or (EMPTY if known is None else f"{known:.2f}"),
                _ours(name, records),
                _digits(name, rivals),
            ]
        )
    return f"{INTRO}\n{markdown(header, lines)}\n"


def _ours(name: str, records: Sequence[Any]) -> str:
    """The longest runs of the plain method, on the paper's setting."""
    chosen = [
        r
        for r in records
        if (r["dataset"], r["algorithm"], r["gamma"], r["n_max"]) == ("cifar10", name, 50, 50)
        and r["gamma_unlabelled"] in (None, 1)
        and not r["options"]
        and set(r.get("overrides") or {}) <= {"algorithm"}
    ]
    if not chosen:
        return EMPTY
    steps = max(r["steps"] for r in chosen)
    values = [r["median_10"] for r in chosen if r["steps"] == steps]
    return f"{mean_and_sd(values)} ({power(steps)} steps, n = {len(values)})"


def _label(name: str, rivals: dict[str, Any]) -> str | None:
    """The first row of the digits table that is this algorithm: its plain form."""
    return next((label for label, row in rivals.get("rows", {}).items() if row["algorithm"] == name), None)


def _digits(name: str, rivals: dict[str, Any]) -> str:
    cell = rivals.get("cells", {}).get(SETTING, {}).get(_label(name, rivals))
    return EMPTY if cell is None else f"{mean_and_sd(cell['accuracy'])} (n = {len(cell['accuracy'])})"


def main() -> int:
    rivals = json.loads(results.RIVALS.read_text(encoding="utf-8")) if results.RIVALS.exists() else {}
    words = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    text = page(words, read_rows(results.RECIPE), read_records(results.RECORDS), rivals)
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
