"""Which classes are called by whose name, early in training: CADR, and what may tie names to their classes better.

That is CAP + CAI, which is CADR without its supplement, labelled rows that are re-sampled, and rows that are anchored.

    PYTHONPATH=src python3 benchmarks/reproduce.py rest --plan benchmarks/names.txt --records benchmarks/names
    python benchmarks/names.py        # names/ -> names.md

CIFAR-10, γ = 100, on 5,000 training images that are held out from both streams, with seeds that no result has.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import Record, markdown, read_records  # noqa: E402
from benchmarks.explain import explain  # noqa: E402
from benchmarks.matched import accuracy, matched_accuracy  # noqa: E402

RECORDS = ROOT / "benchmarks" / "names"
OUT = ROOT / "benchmarks" / "names.md"


def table(records: list[Record]) -> str:
    header = [
        *("", "seed", "accuracy", "if names were matched", "GM", "recall of the two rarest"),
        "P̂ of the class with most labels, with fewest",
    ]
    lines = []
    for r in sorted(records, key=lambda r: (r["row"], r["seed"])):
        confusion = r["confusion"]
        figures = (accuracy(confusion), matched_accuracy(confusion), r["gm"])
        rarest = " and ".join(f"{recall:.1f}" for recall in r["recall"][-2:])
        shares = f"{100 * r['prior'][0]:.1f} and {100 * r['prior'][-1]:.1f}"
        lines.append([r["row"], str(r["seed"]), *(f"{figure:.2f}" for figure in figures), rarest, shares])
    return markdown(header, lines)


def build(records: list[Record]) -> str:
    steps, images = {r["steps"] for r in records}, {r["evaluated_on"] for r in records}
    assert len(steps) == 1, "runs of different lengths share no table"
    assert images == {"held_out"}
    what = f"After {steps.pop():,} steps, in % of the held-out images. Written by `python benchmarks/names.py`."
    return f"{what}\n\n{table(records)}\n"


if __name__ == "__main__":
    explain(__doc__)
    OUT.write_text(build(read_records(RECORDS)), encoding="utf-8")
