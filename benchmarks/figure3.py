"""Draw benchmarks/figure3.svg from the records: how FixMatch and CADR converge, and whom they confuse.

    python benchmarks/figure3.py [--steps 131072] [--seed 1]

The paper's Figure 3: CIFAR-10, γ = 50. Without --steps, the longest runs that both methods have.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "cadr"  # the same records give the same file

from matplotlib import pyplot as plt  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"
OUT = ROOT / "benchmarks" / "figure3.svg"
ROWS = {"FixMatch": "cifar10-gamma50-fixmatch", "CADR": "cifar10-gamma50-cadr"}

Record = dict[str, Any]


def pair(records: Sequence[Record], seed: int, steps: int | None) -> dict[str, Record] | None:
    """Both methods' records of one length and seed; None where one is missing."""
    found = {
        (name, r["steps"]): r
        for r in records
        for name, row in ROWS.items()
        if r.get("row") == row and not r.get("overrides") and r["seed"] == seed
    }
    lengths = {s for _, s in found if all((name, s) in found for name in ROWS)}
    if steps is not None:
        lengths &= {steps}
    return {name: found[name, max(lengths)] for name in ROWS} if lengths else None


def draw(methods: dict[str, Record], out: Path) -> None:
    panels = [name for name, record in methods.items() if record.get("confusion")]
    figure, axes = plt.subplots(
        1, 1 + len(panels), figsize=(5 + 4 * len(panels), 4), squeeze=False, layout="constrained"
    )
    curve, *matrices = axes[0]
    for name, record in methods.items():
        steps, accuracy = zip(*record["curve"], strict=True)
        curve.plot(steps, accuracy, label=f"{name}: {record['median_10']:.2f} %")
    curve.xaxis.set_major_formatter(lambda step, _: f"{step / 1000:g}")
    curve.set(xlabel="steps, thousands", ylabel="test accuracy, %", title="convergence", ylim=(0, 100))
    curve.legend(loc="lower right")
    curve.grid(alpha=0.3)
    for panel, name in zip(matrices, panels, strict=True):
        confusion = methods[name]["confusion"]
        shares = [[100 * n / max(1, sum(line)) for n in line] for line in confusion]
        image = panel.imshow(shares, vmin=0, vmax=100, cmap="Blues")
        panel.set(xlabel="predicted class", ylabel="true class (labels grow rarer)", title=name)
        panel.set_xticks(range(len(shares)))
        panel.set_yticks(range(len(shares)))
    if panels:
        figure.colorbar(image, ax=matrices, label="share of the class, %", shrink=0.8)
    record = next(iter(methods.values()))
    figure.suptitle(f"CIFAR-10, γ = 50, {record['steps']:,} steps, seed {record['seed']}, {record['device']}")
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int)
    arguments = parser.parse_args(argv)
    read = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(arguments.records.glob("*.json"))]
    methods = pair([r for r in read if isinstance(r, dict) and "curve" in r], arguments.seed, arguments.steps)
    if methods is None:
        print("figure3: no records of both FixMatch and CADR at the same length and seed yet", file=sys.stderr)
        return 2
    draw(methods, arguments.out)
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
