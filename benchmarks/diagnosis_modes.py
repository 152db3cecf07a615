"""The diagnosis where each class has several modes of its own, with and without features that bend to them.

    python benchmarks/diagnosis_modes.py --out benchmarks/diagnosis_modes.json      # minutes
    python benchmarks/diagnosis_modes.py --show benchmarks/diagnosis_modes.json

Classes are mixtures of Gaussians whose centres lie at random, so that one class lies between the modes of another. 600
rows, of which 200 have labels; a class is labelled up to six times as often as another; or, beside that, the modes of a
class are labelled unequally often, which the class does not explain and a warning should say. One mode is the control.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cadr.data.pool import MISSING, Pool
from cadr.diagnosis import diagnose as room
from cadr.diagnosis.diagnose import diagnose

FIRST_SEED = 40_000
ROWS, LABELS, DIMENSIONS = 600, 200, 4
SETTINGS = [(classes, modes, decides) for classes, modes in ((3, 1), (3, 3), (5, 3))
            for decides in ("class", "class and mode")]  # fmt: skip


def drawn(classes: int, modes: int, decides: str, seed: int) -> Pool:
    random = np.random.default_rng([seed, classes, modes, decides == "class"])
    centres = 3.0 * random.normal(size=(classes, modes, DIMENSIONS))
    truth, mode = random.integers(0, classes, ROWS), random.integers(0, modes, ROWS)
    x = centres[truth, mode] + random.normal(size=(ROWS, DIMENSIONS))
    odds = np.log(6.0) * random.random(classes)[truth]
    if decides != "class":
        odds += np.log(12.0) * (mode == 0) if modes > 1 else np.log(12.0) * (x[:, 0] > centres[truth, 0, 0])
    labelled = np.argsort(-(odds + random.gumbel(size=ROWS)))[:LABELS]
    labels = np.full(ROWS, MISSING)
    labels[labelled] = truth[labelled]
    names = tuple(f"c{c}" for c in range(classes))
    return Pool(x.astype(np.float32), labels, names, "modes", hidden_labels=truth)


def one(classes: int, modes: int, decides: str, seed: int, bends: bool) -> dict[str, Any]:
    pool = drawn(classes, modes, decides, seed)
    assert pool.hidden_labels is not None
    with nullcontext() if bends else patch.object(room, "FEWEST", ROWS):
        found = diagnose(pool, seed=seed)
    truth = np.bincount(pool.hidden_labels[pool.labels == MISSING], minlength=classes)
    truth = truth / truth.sum()
    known = [(c, t) for c, t in zip(found.classes, truth, strict=True) if c.share_interval is not None]
    return {
        "intervals": len(known),
        "hold": int(sum(c.share_interval[0] <= t <= c.share_interval[1] for c, t in known)),  # type: ignore[index]
        "errors": [float(abs(100 * ((c.share or 0.0) - t))) for c, t in known],
        "warned": bool(found.other_than_class) or found.weak,
        "bent": found.bent,
    }


def record_of(setting: tuple[int, int, str], bends: bool, draws: list[dict[str, Any]]) -> dict[str, Any]:
    silent = [draw for draw in draws if not draw["warned"]]
    errors = [error for draw in draws for error in draw["errors"]]

    def coverage(of: list[dict[str, Any]]) -> float | None:
        number = sum(draw["intervals"] for draw in of)
        return round(sum(draw["hold"] for draw in of) / number, 3) if number else None

    return {
        **dict(zip(("classes", "modes", "decides"), setting, strict=True)),
        "bends": bends,
        "draws": len(draws),
        "bent": sum(draw["bent"] for draw in draws),
        "warned": sum(draw["warned"] for draw in draws),
        "coverage": coverage(draws),
        "coverage_unwarned": coverage(silent),
        "mean_error": round(float(np.mean(errors)), 2),
        "largest_error": round(max(errors), 1),
        "largest_error_unwarned": round(max((e for draw in silent for e in draw["errors"]), default=0.0), 1),
    }


def table(records: list[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table: before and after the arrow, without and with centres."""
    lines = [
        "| classes, modes | decides | error | largest | coverage | warned | bent |",
        "|---|---|---|---|---|---|---|",
    ]
    for before, after in zip(records[::2], records[1::2], strict=True):
        pairs = (f"{before[name]} → {after[name]}" for name in ("mean_error", "largest_error", "coverage", "warned"))
        where = f"{after['classes']}, {after['modes']} | {after['decides']}"
        lines.append(f"| {where} | {' | '.join(pairs)} | {after['bent']} of {after['draws']} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show a file written before")
    options = parser.parse_args()
    if options.show is not None:
        print("\n".join(table(json.loads(options.show.read_text()))))
        return
    records = []
    for setting in SETTINGS:
        for bends in (False, True):
            draws = [one(*setting, seed, bends) for seed in range(FIRST_SEED, FIRST_SEED + options.seeds)]
            records.append(record_of(setting, bends, draws))
            print(records[-1], flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
