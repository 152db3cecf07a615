"""Populations in which classes are not equally frequent: CADR with equal class shares, and with those diagnosed.

Beside it stands CAP on top of FreeMatch on re-sampled labels, which is told the diagnosed shares as well.

    python benchmarks/populations.py        # writes populations.json and populations.md beside it, minutes on two cores
    … --only "one of the rarest"            # these populations again; what the file says of the others stays

Every method gets the same rows and labels, and is judged on the rows without a label: accuracy, and the mean of the
classes' recalls. Logistic regression learns from the labelled rows alone. The rule was chosen with seeds below 100.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cadr.classifier import CADRClassifier

SEEDS = range(101, 106)
RECORD = Path(__file__).with_suffix(".json")
Rows = tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]  # features, classes, whether labelled


def drawn(X: NDArray[Any], truth: NDArray[Any], kept: ArrayLike, labelled: ArrayLike, seed: int) -> Rows:
    """Of class c a share of kept[c] stays in the population, and a share of labelled[c], at least two rows, of that."""
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(len(truth)) < np.asarray(kept)[truth])
    X, truth = X[rows], truth[rows]
    known = random.random(len(truth)) < np.asarray(labelled)[truth]
    for c in np.unique(truth):
        known[np.flatnonzero(truth == c)[:2]] = True
    return X, truth, known


def blobs(shares: list[float], labelled: ArrayLike, apart: float, n: int, seed: int) -> Rows:
    """Gaussian classes in ten dimensions, `apart` standard deviations from a common centre."""
    random = np.random.default_rng(seed)
    truth = random.choice(len(shares), n, p=shares)
    centres = random.normal(size=(len(shares), 10))
    centres *= apart / np.linalg.norm(centres, axis=1, keepdims=True)
    return drawn(random.normal(size=(n, 10)) + centres[truth], truth, np.ones(len(shares)), labelled, seed)


def _real(load: Callable[[], Any], kept: ArrayLike, labelled: ArrayLike, seed: int) -> Rows:
    data = load()
    return drawn(data.data, data.target, kept, labelled, seed)


def one_label_of_the_last(rows: Rows) -> Rows:
    """The last class keeps its first label only, so that nothing can be estimated of it."""
    X, truth, known = rows
    known[np.flatnonzero(known & (truth == truth.max()))[1:]] = False
    return X, truth, known


_SKEWED = [0.6, 0.25, 0.1, 0.05]
SETTINGS: dict[str, Callable[[int], Rows]] = {
    "two classes, 95 to 5, the rare one labelled more": lambda s: blobs([0.95, 0.05], [0.02, 0.4], 2.5, 3000, s),
    "two classes, 90 to 10, labels at random": lambda s: blobs([0.9, 0.1], [0.1, 0.1], 2.0, 2000, s),
    "four classes, 60 to 5, the rare ones labelled more": lambda s: blobs(_SKEWED, [0.02, 0.05, 0.1, 0.3], 3, 3000, s),
    "four classes, 60 to 5, the common one labelled more": lambda s: blobs(
        _SKEWED, [0.1, 0.05, 0.05, 0.05], 3, 3000, s
    ),
    "four equal classes, labelled 20 to 1": lambda s: blobs([0.25] * 4, [0.2, 0.08, 0.03, 0.01], 3, 2000, s),
    "three classes, 84 to 4, labels at random, one of the rarest": lambda s: one_label_of_the_last(
        blobs([0.84, 0.12, 0.04], [0.025] * 3, 3, 3000, s)
    ),
    "four equal classes, labelled 20 to 1, one of the rarest": lambda s: one_label_of_the_last(
        blobs([0.25] * 4, [0.2, 0.08, 0.03, 0.01], 3, 2000, s)
    ),
    "four classes, 60 to 5, the rare ones labelled more, one of the rarest": lambda s: one_label_of_the_last(
        blobs(_SKEWED, [0.02, 0.05, 0.1, 0.3], 3, 3000, s)
    ),
    "four classes, 60 to 5, the common one labelled more, one of the rarest": lambda s: one_label_of_the_last(
        blobs(_SKEWED, [0.1, 0.05, 0.05, 0.05], 3, 3000, s)
    ),
    "three classes, 70 to 10, overlapping, labels at random": lambda s: blobs(
        [0.7, 0.2, 0.1], [0.035] * 3, 1.6, 1200, s
    ),
    "two classes, 97 to 3, overlapping, the rare one labelled more": lambda s: blobs(
        [0.97, 0.03], [0.045, 0.25], 1.2, 4000, s
    ),
    "three equal classes, overlapping, labelled 7 to 1": lambda s: blobs([1 / 3] * 3, [0.07, 0.02, 0.01], 1.6, 1200, s),
    "breast cancer, 1 to 9, malignant labelled more": lambda s: _real(load_breast_cancer, [0.19, 1], [0.5, 0.05], s),
    "wine": lambda s: _real(load_wine, [1, 1, 1], [0.4, 0.15, 0.1], s),
    "digits, 10 to 1, common ones labelled more": lambda s: _real(
        load_digits, np.geomspace(1, 0.1, 10), np.geomspace(0.3, 0.05, 10), s
    ),
    "digits, 10 to 1, rare ones labelled more": lambda s: _real(
        load_digits, np.geomspace(1, 0.1, 10), np.geomspace(0.05, 0.4, 10), s
    ),
    "digits, equal, labelled 30 to 1": lambda s: _real(load_digits, np.ones(10), np.geomspace(0.3, 0.01, 10), s),
}
METHODS: dict[str, Callable[[int, int], Any]] = {
    "logistic regression": lambda classes, seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "CADR, equal shares": lambda classes, seed: CADRClassifier(
        "cadr", settings={"target_prior": (1.0,) * classes}, random_state=seed
    ),
    "CADR, diagnosed shares": lambda classes, seed: CADRClassifier("cadr", random_state=seed),
    "CAP + FreeMatch, re-sampled, diagnosed shares": lambda classes, seed: CADRClassifier(
        "cap_freematch_resampling", random_state=seed
    ),
}


def run(job: tuple[str, str, int]) -> tuple[str, str, int, float, float]:
    """One method on one population: accuracy and mean recall, in percent, of the unlabelled rows."""
    setting, method, seed = job
    torch.set_num_threads(1)
    X, truth, known = SETTINGS[setting](seed)
    model = METHODS[method](int(truth.max()) + 1, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "logistic regression":
            model.fit(X[known], truth[known])
        else:
            model.fit(X, np.where(known, truth, -1))
    right = model.predict(X[~known]) == truth[~known]
    recalls = [right[truth[~known] == c].mean() for c in np.unique(truth[~known])]
    return setting, method, seed, 100 * float(right.mean()), 100 * float(np.mean(recalls))


def table(record: dict[str, Any]) -> str:
    methods = list(METHODS)
    lines = ["| | " + " | ".join(methods) + " |", "|---|" + "--:|" * len(methods)]
    for setting, found in record["settings"].items():
        cells = [f"{_mean(found[m]['accuracy'])} / {_mean(found[m]['recall'])}" for m in methods]
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean(values: list[float]) -> str:
    return f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--only", default="", metavar="WORDS", help="populations with these words in their name")
    arguments = parser.parse_args()
    again = [setting for setting in SETTINGS if arguments.only in setting]
    jobs = [(setting, method, seed) for seed in SEEDS for setting in again for method in METHODS]
    before = json.loads(arguments.out.read_text(encoding="utf-8"))["settings"] if len(again) < len(SETTINGS) else {}
    found: dict[str, Any] = {
        s: {m: {"accuracy": [], "recall": []} for m in METHODS} if s in again else before[s] for s in SETTINGS
    }
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as workers:
        for setting, method, seed, accuracy, recall in workers.imap(run, jobs, chunksize=1):
            found[setting][method]["accuracy"].append(round(accuracy, 2))
            found[setting][method]["recall"].append(round(recall, 2))
            print(f"{setting}; {method}, seed {seed}: {accuracy:.1f} / {recall:.1f} %", flush=True)
    record = {"seeds": list(SEEDS), "sklearn": sklearn.__version__, "torch": torch.__version__, "settings": found}
    arguments.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    what = f"Accuracy / mean recall (%) on the unlabelled rows, mean ± standard deviation over {len(SEEDS)} seeds."
    text = f"{what}\n\n{table(record)}\n"
    arguments.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
