"""Other class shares than those of training: given by somebody, or estimated from the rows to predict on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cadr.data.pool import spread
from cadr.data.split import Split, apply
from cadr.errors import CadrError, CheckpointError, ConfigError
from cadr.estimate.label_shift import label_shift, with_prior
from cadr.inference.predictor import Predictor
from cadr.training.plan import open_source
from cadr.training.run_folder import RunFolder, located
from cadr.utils.options import suggest
from cadr.utils.text import listed

Floats = NDArray[np.float64]

ESTIMATED = "estimated"
ROWS = 10_000  # of the training data, on which the model's own shares are taken
KEPT = 1 << 24  # probabilities of new rows kept in memory to estimate their shares
_AT_ONCE = 1000
_ADDS_UP = 1e-3  # to one: shares are written with few digits
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Shift:
    """From the classes' shares that a model was trained under to those of another population."""

    before: Floats
    after: Floats

    def __call__(self, probabilities: Floats) -> Floats:
        return with_prior(probabilities, self.before, self.after)

    def words(self, names: Sequence[str]) -> list[list[str]]:
        """Rows of a table: class, share as trained, share now."""
        return [
            [name, *(f"{100 * share:.1f} %" for share in pair)]
            for name, *pair in zip(names, self.before, self.after, strict=True)
        ]


def shift_to(prior: str | Mapping[Any, float], before: Floats, names: Sequence[Any]) -> Shift:
    """To shares that are given, as a mapping or as `cat=.2,dog=.8`.

    Classes that it does not name divide the rest among them as they were.
    """
    given = parse_prior(prior, names) if isinstance(prior, str) else dict(prior)
    for name, share in given.items():
        if name not in names:
            raise ConfigError(f"prior: there is no class {name!r}: {suggest(str(name), map(str, names))}")
        if not (math.isfinite(share) and 0.0 <= share <= 1.0):
            raise ConfigError(f"prior: the share of {name!r} lies between 0 and 1, got {share}")
    total = math.fsum(given.values())
    others = [i for i, name in enumerate(names) if name not in given]
    if total > 1.0 + _ADDS_UP or (not others and total < 1.0 - _ADDS_UP):
        raise ConfigError(f"prior: the shares of the classes add up to {total:.6g}; they should add up to 1")
    after = np.array([given.get(name, 0.0) for name in names])
    if others:
        after[others] = max(0.0, 1.0 - total) * before[others] / before[others].sum()
    return Shift(before, after / after.sum())


def parse_prior(text: str, names: Sequence[str]) -> dict[str, float]:
    """`cat=.2,dog=.8`, where the names of classes may hold commas and equals signs themselves."""
    found: dict[str, float] = {}
    at = 0
    while at < len(text):
        name = max((n for n in names if text.startswith(f"{n}=", at)), key=len, default=None)
        if name is None:
            raise ConfigError(
                f"prior: expected CLASS=SHARE,… or {ESTIMATED}, got {text[at:]!r}; the classes are "
                f"{listed(list(names))}"
            )
        at += len(name) + 1
        number = _NUMBER.match(text, at)
        after = len(text) if number is None else number.end()
        if number is None or text[after : after + 1] not in ("", ","):
            raise ConfigError(f"prior: expected a number for {name!r}, got {text[at:].split(',')[0]!r}")
        if name in found:
            raise ConfigError(f"prior: class {name!r} is named twice")
        found[name], at = float(number[0]), after + 1
    if not found:
        raise ConfigError(f"prior: expected CLASS=SHARE,… or {ESTIMATED}, got nothing")
    return found


def estimated_shift(blocks: Iterable[Floats], before: Floats) -> Shift:
    """To the shares that make new rows most likely, whose probabilities (n, C) come block by block."""
    kept: list[Floats] = []
    every, start, held = 1, 0, 0
    for block in blocks:
        part = block[-start % every :: every]
        start += len(block)
        kept.append(part)
        held += part.size
        if held > KEPT:  # every other row of so many says as much
            kept, every = [np.concatenate(kept)[::2]], 2 * every
            held = kept[0].size
    return Shift(before, label_shift(np.concatenate(kept), before) if held else before)


def training_shares(run: Path | str, predictor: Predictor) -> tuple[Floats, str]:
    """The mean prediction on what the run was trained on; a sentence where something else has to stand for it."""
    folder = RunFolder.there(run)
    try:
        pool = open_source(located(predictor.config, folder.path))
        if (folder.path / "split.json").exists():
            pool = apply(pool, Split.read(folder.path / "split.json"))
        predictor.wanted().check(pool.name, pool.examples)
    except (CadrError, OSError):
        return _believed(folder), (
            f"The data that {folder.path} was trained on cannot be opened: its own P̂ is used as their class prior."
        )
    rows = spread(np.arange(len(pool.labels)) if pool.stream is None else pool.stream, ROWS)
    total: Floats = np.zeros(len(predictor.class_names))
    for start in range(0, len(rows), _AT_ONCE):
        found = predictor.probabilities(pool.examples[rows[start : start + _AT_ONCE]])
        total += found.double().sum(0).cpu().numpy()
    return total / total.sum(), ""


def _believed(folder: RunFolder) -> Floats:
    records = [record for record in folder.checked_records() if "prior" in record]
    if not records:
        raise CheckpointError(f"{folder.path} has no record of its training, so its class shares are not known.")
    prior: Floats = np.array(records[-1]["prior"], dtype=np.float64)
    return np.asarray(prior / prior.sum())
