"""Are probabilities better calibrated after calibration than before, when 10, 30 or 100 labels are held out for it?

    python benchmarks/calibration.py [--root FOLDER]    # writes calibration.json and calibration.md, in minutes

CADRClassifier on digits and Fashion-MNIST (found under --root; 6,000 training images drawn for each
seed, the first 64 principal components of their pixels). A fifth of the labels is held out to calibrate on, and the
labels are a long tail with the first class labelled most (γ = 20). The expected calibration error, of the model's own
probabilities and of the calibrated ones, is over test images that neither training nor calibration has seen.

The prior of the calibration was chosen on training images alone, half of them held out, with seeds 31 and 32, three
methods (cadr, fixmatch, supervised) and γ of 1 and 20: of means of the log-slope from 0 to −0.9, of precisions from 1
to 25 and of gains in likelihood from 0 to 2 that a change must bring, these were hardly ever worse than no calibration
where probabilities were good already, and almost as much better as any where they were bad.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.decomposition import PCA

from cadr.classifier import CADRClassifier
from cadr.data import open_data
from cadr.data.sources.arrays import as_examples
from cadr.estimate.calibration import calibration_error

LABELS = (50, 150, 500)  # a fifth is held out
GAMMA, SEEDS, ROWS = 20.0, 5, 6000
RECORD = Path(__file__).with_suffix(".json")


class Case(NamedTuple):
    name: str
    data: str
    sees: str  # pixels (n, 64), images (n, 8, 8, 1) or components (n, 64)
    settings: dict[str, Any]


_CONVNET = {"model": "convnet", "steps": 300}
CASES = (
    Case("digits, small convolutional net", "digits", "images", {**_CONVNET, "settings": {"flip": False}}),
    Case("digits, perceptron", "digits", "pixels", {}),
    Case("Fashion-MNIST components, perceptron", "fashion_mnist", "components", {}),
)


class Job(NamedTuple):
    case: int
    labels: int
    seed: int
    root: str | None


def run(job: Job) -> tuple[Job, int, float, float]:
    """Labels held out, and expected calibration error in percent before and after."""
    torch.set_num_threads(1)
    case, random = CASES[job.case], np.random.default_rng([job.seed, job.labels])
    pool = open_data(case.data, root=job.root)
    assert pool.test_examples is not None
    assert pool.test_labels is not None
    rows = random.permutation(len(pool.labels))[:ROWS]
    X, X_test = _seen(pool.examples[rows], pool.test_examples, case.sees)
    y, kept = np.full(len(rows), -1), _tail(job.labels, pool.num_classes)
    for c, number in enumerate(kept):
        y[np.flatnonzero(pool.labels[rows] == c)[:number]] = c
    model = CADRClassifier("cadr", validation=0.2, random_state=job.seed, **case.settings).fit(X, y)
    logits = model._predictor.logits(as_examples("X", X_test)).double()
    truth, weights = torch.from_numpy(pool.test_labels), torch.ones(len(X_test), dtype=torch.float64)
    before, after = (
        100.0 * calibration_error(p, truth, weights) for p in (logits.softmax(1), model.calibration_(logits).exp())
    )
    return job, model.calibration_.examples, before, after


def _tail(total: int, classes: int) -> list[int]:
    shares = GAMMA ** (-np.arange(classes) / (classes - 1))
    counts: list[int] = np.maximum(1, np.rint(total * shares / shares.sum())).astype(int).tolist()
    return counts


def _seen(images: Any, test: Any, sees: str) -> tuple[Any, Any]:
    grey, grey_test = images[..., :1], test[..., :1]
    if sees == "images":
        return grey, grey_test
    flat, flat_test = (part.reshape(len(part), -1).astype(np.float32) / 255 for part in (grey, grey_test))
    if sees == "pixels":
        return flat, flat_test
    components = PCA(64, random_state=0).fit(flat)
    return components.transform(flat).astype(np.float32), components.transform(flat_test).astype(np.float32)


def table(cells: list[dict[str, Any]]) -> str:
    lines = ["| | labels held out | before, % | after, % | not worse in |", "|---|--:|--:|--:|--:|"]
    for cell in cells:
        before, after = (statistics.fmean(cell[when]) for when in ("before", "after"))
        better = sum(a <= b for a, b in zip(cell["after"], cell["before"], strict=True))
        held = f"{statistics.fmean(cell['held_out']):.0f}"
        lines.append(f"| {cell['case']} | {held} | {before:.1f} | {after:.1f} | {better} of {len(cell['after'])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", help="where benchmarks lie (default: $CADR_DATA, else data/)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    jobs = [Job(c, n, s, arguments.root) for c in range(len(CASES)) for n in LABELS for s in range(1, SEEDS + 1)]
    found: dict[Job, tuple[int, float, float]] = {}
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as workers:
        for job, held, before, after in workers.imap_unordered(run, jobs, chunksize=1):
            found[job] = (held, before, after)
            where = f"{CASES[job.case].name}, {held} of {job.labels} labels held out, seed {job.seed}"
            print(f"{where}: {before:.1f} % before, {after:.1f} % after", flush=True)
    cells = []
    for c, case in enumerate(CASES):
        for n in LABELS:
            values = [found[job] for job in jobs if (job.case, job.labels) == (c, n)]
            columns = {name: [round(v[i], 3) for v in values] for i, name in enumerate(("held_out", "before", "after"))}
            cells.append({"case": case.name, "labels": n, **columns})
    seeds = list(range(1, SEEDS + 1))
    record = {"algorithm": "cadr", "gamma": GAMMA, "seeds": seeds, "torch": torch.__version__, "cells": cells}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    text = f"Expected calibration error on test images, mean over {SEEDS} seeds.\n\n{table(cells)}\n"
    arguments.out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
