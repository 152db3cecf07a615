"""Pictures and texts through a pretrained model, labels biased 50 to 1: ours beside scikit-learn.

    python benchmarks/features.py --sources FOLDER     # a quarter of an hour on two cores

FOLDER holds news.csv (AG News: text and label), cifar10.npz and mini_imagenet.npz (x_train, uint8 pictures, and
y_train). A record is a line of features.jsonl, written as soon as it is there: stop it when you like, it goes on where
it was. features.md has the tables. Labels fall geometrically by the class (the protocol `longtail`), in an order of
classes that every seed draws anew; classes themselves are even. Every method gets the same vectors and labels, and is
judged on the rows without a label. What computing the vectors costs stands apart, as all methods share it. Seconds are
of a processor, one thread.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))  # before numpy: a processor's seconds are one core's

import numpy as np  # noqa: E402
import torch  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.semi_supervised import SelfTrainingClassifier  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.own.methods import PENALISED, SIMPLE, Task  # noqa: E402

import cadr  # noqa: E402
from cadr.data.protocols import Longtail  # noqa: E402
from cadr.data.raw import Pictures, Raw, embed, raw_of  # noqa: E402
from cadr.data.sources.images import resize_all  # noqa: E402
from cadr.embedding.registry import Pretrained  # noqa: E402

RECORD = Path(__file__).with_suffix(".jsonl")
SEEDS = (1, 2, 3, 4, 5)
GAMMA = 50.0
OURS, DIAGNOSIS, EMBEDDING, PIXELS = "ours", "diagnosis", "embedding", "pixels"
PIXEL_SEED, PIXEL_STEPS = 1, 100
PEERS = {
    "logistic": "logistic regression",
    "logistic_balanced": "logistic regression, balanced",
    "logistic_balanced_0.01": "logistic regression, balanced, C = 0.01",
    "logistic_as_is": "logistic regression, balanced, vectors as they are",
    "self_training": "SelfTraining, balanced logistic regression",
    "self_training_as_is": "SelfTraining, the same with C = 10, vectors as they are",
    "spreading_7": "LabelSpreading, 7 neighbours",
    "spreading_20": "LabelSpreading, 20 neighbours",
}
METHODS = SIMPLE | PENALISED
# The others standardise the vectors; these take them as they are, as people do with unit vectors.
AS_THEY_ARE: dict[str, Callable[[], Any]] = {
    "logistic_as_is": lambda: LogisticRegression(class_weight="balanced", max_iter=1000),
    "self_training_as_is": lambda: SelfTrainingClassifier(
        LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
    ),
}
Record = dict[str, Any]


class Labelled(NamedTuple):
    raw: Raw
    y: NDArray[np.int64]


class Setting(NamedTuple):
    title: str
    features: str
    n_max: int  # labels of the class that has most
    open: Callable[[Path], Labelled]
    side: int = 0  # of the pictures that a network is trained on without features; 0: there are none
    seeds: tuple[int, ...] = SEEDS


def news(sources: Path) -> Labelled:
    with (sources / "news.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["label"] for row in rows})
    y = np.array([names.index(row["label"]) for row in rows])
    return Labelled(raw_of("news", [row["text"] for row in rows]), y)


def pictures(file: str, classes: int, each: int) -> Callable[[Path], Labelled]:
    """So many training pictures of each of the first classes, drawn once."""

    def load(sources: Path) -> Labelled:
        with np.load(sources / file) as data:
            x, y = data["x_train"], data["y_train"].astype(np.int64)
        random = np.random.default_rng(0)
        rows = [random.permutation(np.flatnonzero(y == c))[:each] for c in range(classes)]
        chosen = np.sort(np.concatenate(rows))
        return Labelled(raw_of(file, np.ascontiguousarray(x[chosen])), y[chosen])

    return load


SETTINGS = {
    "ag_news": Setting("AG News", "sentence-transformers/all-MiniLM-L6-v2", 72, news),
    "cifar10": Setting("CIFAR-10", "efficientnet-lite0", 50, pictures("cifar10.npz", 10, 300), 32, SEEDS[:3]),
    "mini_imagenet": Setting(
        "mini-ImageNet", "efficientnet-lite0", 50, pictures("mini_imagenet.npz", 20, 75), 32, SEEDS[:3]
    ),
}


def biased(y: NDArray[np.int64], n_max: int, seed: int) -> NDArray[np.int64]:
    """Labels with −1 where the protocol leaves none, its order of classes drawn by the seed."""
    classes = int(y.max()) + 1
    order = np.random.default_rng(seed).permutation(classes)
    kept = Longtail(n_max=n_max, gamma=GAMMA).select(order[y], classes, seed).labelled
    found = np.full(len(y), -1)
    found[kept] = y[kept]
    return found


def judged(guess: NDArray[np.int64], truth: NDArray[np.int64]) -> Record:
    right = guess == truth
    recalls = [right[truth == c].mean() for c in np.unique(truth)]
    return {"accuracy": round(100 * float(right.mean()), 2), "macro_recall": round(100 * float(np.mean(recalls)), 2)}


def by_ours(X: Any, y: NDArray[np.int64], seed: int, **settings: Any) -> NDArray[np.int64]:
    """Guesses for the rows without a label, as a user gets them."""
    run = cadr.train(X, y, quiet=True, seed=seed, device="cpu", **settings)
    return np.asarray(run.predict(X[y < 0]))


def by_peer(name: str, X: NDArray[np.float32], y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    if name in AS_THEY_ARE:
        rows = y >= 0 if name.startswith("logistic") else slice(None)
        return np.asarray(AS_THEY_ARE[name]().fit(X[rows], y[rows]).predict(X[y < 0]))
    return np.asarray(METHODS[name](Task(X, y, int(y.max()) + 1, seed)).argmax(1))


def diagnosed(X: NDArray[np.float32], y: NDArray[np.int64], truth: NDArray[np.int64], seed: int) -> Record:
    """Percentage points that the shares of the unlabelled rows are off by, and how many 90 % intervals hold."""
    found = cadr.diagnose(X, y, seed=seed)
    shares = np.bincount(truth, minlength=len(found.classes)) / len(truth)
    known = [(c, share) for c, share in zip(found.classes, shares, strict=True) if c.share is not None]
    estimates = [(float(c.share or 0), c.share_interval or (0.0, 1.0), share) for c, share in known]
    return {
        "error": round(100 * float(np.mean([abs(e - s) for e, _, s in estimates])), 2),
        "naive": round(100 * float(np.mean([abs(c.labelled_share - s) for c, s in known])), 2),
        "inside": int(sum(low <= s <= high for _, (low, high), s in estimates)),
        "estimable": len(estimates),
        "classes": len(shares),
        "p_value": round(found.p_value, 4),
    }


def embedded(setting: Setting, data: Labelled) -> tuple[NDArray[np.float32], Record]:
    """Vectors, computed from nothing, and what that costs."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        pretrained = Pretrained.find(setting.features, "cpu")
        begun = time.process_time()
        vectors = embed(pretrained, data.raw)
        seconds = time.process_time() - begun
    facts = {"rows": len(data.y), "width": vectors.shape[1], "features": setting.features, "model": pretrained.kept_as}
    return vectors, facts | {"seconds": round(seconds, 1)}


def jobs(name: str) -> Iterator[tuple[str, int]]:
    """Methods and seeds; networks without features last, which take longest."""
    yield from ((method, seed) for seed in SETTINGS[name].seeds for method in (OURS, DIAGNOSIS, *PEERS))
    if SETTINGS[name].side:
        yield PIXELS, PIXEL_SEED


def measure(name: str, data: Labelled, X: NDArray[np.float32], method: str, seed: int) -> Record:
    setting = SETTINGS[name]
    y = biased(data.y, setting.n_max, seed)
    truth = data.y[y < 0]
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == DIAGNOSIS:
            found = diagnosed(X, y, truth, seed)
        elif method == PIXELS:
            assert isinstance(data.raw, Pictures)
            small = resize_all(np.asarray(data.raw.array), setting.side)
            found = judged(by_ours(small, y, seed, steps=PIXEL_STEPS), truth) | {"steps": PIXEL_STEPS}
        else:
            guess = by_ours(X, y, seed) if method == OURS else by_peer(method, X, y, seed)
            found = judged(guess, truth)
    counts = np.bincount(y[y >= 0])
    about = {"set": name, "method": method, "seed": seed, "labels": sorted(counts.tolist(), reverse=True)}
    return about | found | {"seconds": round(time.process_time() - begun, 1)}


def table(records: list[Record]) -> str:
    """The tables, set by set."""
    found = []
    for name, setting in SETTINGS.items():
        mine = [r for r in records if r["set"] == name]
        facts = next((r for r in mine if r["method"] == EMBEDDING), None)
        if facts is None or len(mine) == 1:
            continue
        labels = next(r["labels"] for r in mine if r["method"] == OURS)
        found.append(
            f"## {setting.title}\n\n{facts['rows']:,} rows of {len(labels)} classes, {sum(labels)} labels ({labels[0]} "
            f"to {labels[-1]} of a class), vectors of `{setting.features}` in {facts['seconds']:.0f} s "
            f"({1000 * facts['seconds'] / facts['rows']:.0f} ms each).\n\n"
            "| method | accuracy, % | macro recall, % | by seed | s |\n|---|--:|--:|---|--:|\n"
            + "".join(_line(mine, method, title) for method, title in ((OURS, "**ours**, default"), *PEERS.items()))
            + _line(mine, PIXELS, f"ours without features, {PIXEL_STEPS} steps on {setting.side}×{setting.side} pixels")
            + _diagnosis([r for r in mine if r["method"] == DIAGNOSIS])
        )
    command = "python benchmarks/features.py"
    return f"# Learning on pretrained features\n\nMade by `{command}`, which says how.\n\n" + "\n".join(found)


def summary(records: list[Record]) -> str:
    """The table of docs/features.md: mean accuracies, set by set."""
    titles = [(OURS, "**ours**, default"), *PEERS.items(), (PIXELS, "ours, without features")]
    columns = list(SETTINGS.values())
    lines = [
        f"| accuracy, % | {' | '.join(setting.title for setting in columns)} |",
        "|---|" + "--:|" * len(columns),
    ]
    for method, title in titles:
        cells = [_mean(records, name, method, "accuracy") for name in SETTINGS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    errors = [_mean(records, name, DIAGNOSIS, "error") for name in SETTINGS]
    naive = [_mean(records, name, DIAGNOSIS, "naive") for name in SETTINGS]
    lines.append(f"| *error of the diagnosed class shares, points* | {' | '.join(errors)} |")
    lines.append(f"| *error of the labels' own shares, points* | {' | '.join(naive)} |")
    for title, method in (("vectors, s", EMBEDDING), ("ours, s", OURS), ("diagnosis, s", DIAGNOSIS)):
        lines.append(f"| *{title}* | {' | '.join(_mean(records, n, method, 'seconds') for n in SETTINGS)} |")
    return "\n".join(lines) + "\n"


def _mean(records: list[Record], name: str, method: str, what: str) -> str:
    values = [r[what] for r in records if (r["set"], r["method"]) == (name, method)]
    return f"{np.mean(values):.1f}" if values else "–"


def _line(mine: list[Record], method: str, title: str) -> str:
    rows = [r for r in mine if r["method"] == method]
    if not rows:
        return ""
    accuracy, recall = (_spread([r[key] for r in rows]) for key in ("accuracy", "macro_recall"))
    each = ", ".join(f"{r['accuracy']:.1f}" for r in rows)
    return f"| {title} | {accuracy} | {recall} | {each} | {np.mean([r['seconds'] for r in rows]):.1f} |\n"


def _spread(values: list[float]) -> str:
    more = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{more}"


def _diagnosis(rows: list[Record]) -> str:
    inside, estimable, classes = (sum(r[key] for r in rows) for key in ("inside", "estimable", "classes"))
    error, naive, seconds = (np.mean([r[key] for r in rows]) for key in ("error", "naive", "seconds"))
    return (
        f"\nThe diagnosis estimates the classes' shares of the unlabelled rows with a mean error of {error:.1f} "
        f"percentage points, where the labels' own shares are off by {naive:.1f}; {inside} of {estimable} intervals of "
        f"90 % hold, and of {classes - estimable} classes with one label nothing is said. It takes {seconds:.1f} s.\n"
    )


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def key(record: Record) -> tuple[str, str, int]:
    return record["set"], record["method"], record["seed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, default=ROOT / "data", help="folder (default: data)")
    parser.add_argument("--sets", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--cache", type=Path, default=ROOT / "data" / "features", help="of vectors")
    parser.add_argument("--again", nargs="+", default=[], metavar="METHOD", help="forget what is recorded of these")
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.cache.mkdir(parents=True, exist_ok=True)
    records = {key(r): r for r in read(arguments.out) if r["method"] not in arguments.again}

    def keep(record: Record) -> None:
        records[key(record)] = record
        order = {name: i for i, name in enumerate(SETTINGS)}
        ranked = sorted(records.values(), key=lambda r: (order[r["set"]], r["method"], r["seed"]))
        arguments.out.write_text("".join(json.dumps(r) + "\n" for r in ranked), encoding="utf-8")
        print({name: value for name, value in record.items() if name != "labels"}, flush=True)

    for name, quick in [(name, quick) for quick in (True, False) for name in arguments.sets]:
        data, path = SETTINGS[name].open(arguments.sources), arguments.cache / f"{name}.npy"
        if not path.is_file() or (name, EMBEDDING, 0) not in records:
            vectors, facts = embedded(SETTINGS[name], data)
            np.save(path, vectors)
            keep({"set": name, "method": EMBEDDING, "seed": 0} | facts)
        X = np.load(path)
        for method, seed in jobs(name):
            if (name, method, seed) not in records and (method != PIXELS) == quick:
                keep(measure(name, data, X, method, seed))
    text = table(list(records.values()))
    arguments.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
