"""Single examples to look at: how they are shown, and those whose missing labels are worth asking for."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cadr.report.model_outputs import Look
from cadr.report.run_facts import clean
from cadr.report.worth_labelling import variance_removed

_SIDE = 96  # pixels; larger pictures are made smaller, smaller ones are enlarged by the page
_GUESSES = 3


@dataclass(frozen=True)
class Example:
    name: str
    picture: str | None  # data: address of a PNG file
    label: str | None
    part: str  # labelled, unlabelled, or what the run is judged on
    guesses: tuple[tuple[str, float], ...]  # class and probability, the most likely first
    share: float | None = None  # of the variance that its label would remove
    by_neighbours: bool = False  # whose names the guesses are, not the model's own


def worth_labelling(look: Look, propensity: NDArray[np.float64], names: tuple[str, ...], most: int) -> list[Example]:
    """The unlabelled examples whose labels would remove most of the variance; see `worth_labelling.py`."""
    removed = variance_removed(look.on_unlabelled, propensity)
    total = removed.sum()
    shown = []
    for i in np.argsort(-removed, kind="stable")[:most]:
        if removed[i] > 0:
            row = int(look.unlabelled[i])
            guesses = guesses_of(look.on_unlabelled[i], names)
            share = float(removed[i] / total)
            image = picture(look.pool.examples[row])
            shown.append(Example(called(look, "unlabelled", row), image, None, "unlabelled", guesses, share))
    return shown


def guesses_of(probabilities: NDArray[np.float64], names: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """The most likely classes."""
    best = np.argsort(-probabilities, kind="stable")[:_GUESSES]
    return tuple((names[int(c)], float(probabilities[c])) for c in best)


def called(look: Look, part: str, row: int) -> str:
    """What the row is called: a file, or a number in the data or in the part that the run is judged on."""
    if part not in ("labelled", "unlabelled"):
        if look.rows_of_part is None:
            return f"{part.replace('_', ' ')} example {row}"
        row = int(look.rows_of_part[row])
    called = "" if look.pool.identifiers is None else clean(look.pool.identifiers[row])
    return called or f"row {row}"


def picture(example: NDArray[Any], side: int = _SIDE) -> str | None:
    """The example as an image inside the page, if it is one."""
    if example.ndim != 3:
        return None
    image = Image.fromarray(np.ascontiguousarray(example))
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()
