"""Benchmarks by name, looked for under `--root`, else the variable CADR_DATA, else `data/`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cadr.data.benchmarks.cifar import CIFAR10, CIFAR100, open_cifar
from cadr.data.benchmarks.digits import digits
from cadr.data.benchmarks.fashion_mnist import open_fashion_mnist
from cadr.data.benchmarks.mini_imagenet import open_mini_imagenet
from cadr.data.benchmarks.registry import KNOWN, Place
from cadr.data.benchmarks.stl10 import open_stl10
from cadr.data.pool import Pool
from cadr.errors import DataError
from cadr.utils.files import expand_home

__all__ = ["BENCHMARKS", "data_root", "find", "open_benchmark"]

BENCHMARKS: dict[str, Callable[[Place], Pool]] = {
    "digits": lambda _: digits(),
    "fashion_mnist": lambda place: open_fashion_mnist(place.path),
    "cifar10": lambda place: open_cifar(CIFAR10, place),
    "cifar100": lambda place: open_cifar(CIFAR100, place),
    "stl10": lambda place: open_stl10(place.path, place.md5),
    "mini_imagenet": lambda place: open_mini_imagenet(place.path),
}


class NotThereError(DataError):
    """A benchmark's files are not where they were looked for."""


def data_root(root: str | Path | None = None) -> Path:
    return expand_home(root or os.environ.get("CADR_DATA") or "data")


def find(name: str, root: str | Path | None = None) -> list[Place]:
    """Every usual form of a benchmark that is there, in order of preference. `root` may also be that form itself."""
    base = data_root(root)
    places = []
    for form in KNOWN[name].forms:
        for path in (base / form.path, base):
            if path.exists() and (path != base or base.name == Path(form.path).name):
                places.append(Place(path, form))
    return places


def open_benchmark(name: str, root: str | Path | None = None) -> Pool:
    """The pool of a benchmark, verified against what is published about it."""
    if name == "digits":
        return digits()
    places = find(name, root)
    if not places:
        looked_for = ", ".join(form.path for form in KNOWN[name].forms)
        how = f"`cadr data get {name}`" if KNOWN[name].downloads else KNOWN[name].page
        raise NotThereError(
            f"{name} is not under {data_root(root)} (looked for {looked_for}); "
            f"get it with {how}, or name its folder with --root or CADR_DATA"
        )
    return open_place(name, places[0])


def open_place(name: str, place: Place) -> Pool:
    """The pool in one particular place."""
    if not place.form.by_contents:
        place.verify_archive()
    return BENCHMARKS[name](place)
