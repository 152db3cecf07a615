"""Whether the labelled images of a seed stand for their classes: a look at the draw alone, nothing is trained.

    python benchmarks/draws.py        # writes draws.json, draws.md and draws.png; needs CIFAR-10, half a minute

Of every two classes, a linear classifier learns from all training images, at 4 × 4 pixels, what tells them apart at
first sight: colours and where they are. A draw misleads about the two where its labelled images of one look, by that,
more like the other than those of the other do. The classifiers see all labels; no method does.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cadr.data import open_data
from cadr.data.pool import Pool
from cadr.data.protocols import Longtail
from cadr.data.split import make_split

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import markdown  # noqa: E402
from benchmarks.explain import explain  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
OUT = RECORD.with_suffix(".md")
PICTURE = RECORD.with_suffix(".png")
SEEDS = (1, 2, 3)  # those of the tables
OTHERS = range(201, 401)  # those of no run: what is usual
GAMMAS = (20, 50, 100)
SIDE = 4
SHOWN = (4, 7, 8, 9)  # deer, horse, ship, truck: whose names runs have exchanged


def at_first_sight(images: NDArray[Any]) -> NDArray[Any]:
    """(n, 48) mean colours of 4 × 4 squares."""
    n, height, width, channels = images.shape
    squares = images.reshape(n, SIDE, height // SIDE, SIDE, width // SIDE, channels)
    return np.asarray(squares.mean((2, 4), dtype=np.float64).reshape(n, -1))


def labelled(pool: Pool, gamma: int, seed: int) -> NDArray[Any]:
    return np.asarray(make_split(pool, Longtail(n_max=gamma, gamma=float(gamma)), seed, 0).labelled)


def misleading(score: NDArray[Any], classes: NDArray[Any], rows: NDArray[Any], one: int, other: int) -> bool:
    """Whether the drawn rows of `one` have a higher score for `other` than those of `other`, in the mean."""
    means = [score[rows[classes[rows] == c]].mean() for c in (one, other)]
    return bool(means[0] > means[1])


def look(pool: Pool) -> dict[str, Any]:
    classes, seen = np.asarray(pool.labels), at_first_sight(np.asarray(pool.examples))
    draws = {(g, s): labelled(pool, g, s) for g in GAMMAS for s in (*SEEDS, *OTHERS)}
    found: dict[tuple[int, int], list[list[int]]] = {draw: [] for draw in draws}
    told_apart = {}
    for one, other in combinations(range(pool.num_classes), 2):
        both = np.isin(classes, (one, other))
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        model.fit(seen[both], classes[both] == other)
        told_apart[f"{one},{other}"] = round(100 * model.score(seen[both], classes[both] == other), 2)
        score = model.decision_function(seen)
        for draw, rows in draws.items():
            if misleading(score, classes, rows, one, other):
                found[draw].append([one, other])
    return {
        "classes": list(pool.class_names),
        "told_apart": told_apart,
        "labelled": {str(g): np.bincount(classes[draws[g, 1]]).tolist() for g in GAMMAS},
        "seeds": {str(g): {str(s): found[g, s] for s in SEEDS} for g in GAMMAS},
        "others": {str(g): [found[g, s] for s in OTHERS] for g in GAMMAS},
    }


def build(record: dict[str, Any]) -> str:
    names = record["classes"]

    def words(pairs: list[list[int]]) -> str:
        return ", ".join(f"{names[one]} / {names[other]}" for one, other in pairs) or "none"

    lines = []
    for g, others in record["others"].items():
        some = sum(bool(pairs) for pairs in others)
        mine = [words(record["seeds"][g][str(s)]) for s in SEEDS]
        lines.append([f"γ = {g}", *mine, f"{some} of {len(others)}", f"{np.mean([len(p) for p in others]):.2f}"])
    header = ["", *(f"seed {s}" for s in SEEDS), "draws that mislead about some pair", "pairs in the mean"]
    what = (
        "Pairs of classes about which a draw of labelled images misleads at first sight, with the seeds of our tables "
        f"and with {len(OTHERS)} others. Written by `python benchmarks/draws.py`."
    )
    return f"{what}\n\n{markdown(header, lines)}\n"


def picture(pool: Pool, gamma: int = 50, size: int = 48, most: int = 9) -> Image.Image:
    """The labelled images of four classes, a row each, with one seed after another."""
    classes, images = np.asarray(pool.labels), np.asarray(pool.examples)
    block_height = len(SHOWN) * size + size // 2
    page = Image.new("RGB", (most * size, len(SEEDS) * block_height - size // 2), "white")
    for block, seed in enumerate(SEEDS):
        rows = labelled(pool, gamma, seed)
        for line, c in enumerate(SHOWN):
            for column, row in enumerate(rows[classes[rows] == c][:most]):
                at = (column * size, block * block_height + line * size)
                page.paste(Image.fromarray(images[row]).resize((size, size)), at)
    return page


def main() -> None:
    explain(__doc__)
    pool = open_data("cifar10")
    record = look(pool)
    RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")
    OUT.write_text(build(record), encoding="utf-8")
    picture(pool).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
