"""The rows that compare methods on the paper's main setting, and in what they are not trained alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from cadr.cli.recipes import Row
from cadr.config import Config

SETTING = "cifar10-gamma50"
BASELINE = f"{SETTING}-fixmatch"
_ASKED_OF_THE_LOOP = ("generations", "balanced_labels")  # options of a method that change what it is trained on

REMARKS = (
    "Generations share a run's steps, and imputed labels are hard in them and seven images go with a labelled one "
    "(published: soft, and one). What FreeMatch, SoftMatch, FlexMatch and PRG average over or wait for is counted "
    "in steps or examples, as published, and not as a share of the run: a short run is harder for them. SimPro has the "
    "learning rate of all others (published: 0.17), and its labelled loss weighs at least 0.23 (published: the number "
    "of labelled batches over that of unlabelled ones, next to nothing with so few labels). MixMatch and ReMixMatch "
    "raise their weights over an eighth of the run (published: 16,384 steps, an eighth of 2^17). ReMixMatch has the "
    "published settings for 250 labels (for 40 they differ), and weak views of the labelled images (published with "
    "CTAugment: strong ones). DARP was published with "
    "Adam and two unlabelled images for a labelled one, DASH with twice this learning rate on SVHN."
)


def methods(rows: Sequence[Row]) -> list[Row]:
    """One row per method and form of it, without the settings of a method's own knob."""
    ablation = [bool(row.tables) and set(row.tables) <= {"mu", "beta"} for row in rows]
    return [row for row, other in zip(rows, ablation, strict=True) if row.setting == SETTING and not other]


def short(row: Row) -> str:
    return row.name.removeprefix(f"{SETTING}-")


def exceptions(rows: Sequence[Row]) -> str:
    """What the recipes give to some methods and not to FixMatch: "`ratio = 1` (pi-model, mixmatch); …"."""
    usual = _training(next(row for row in rows if row.name == BASELINE))
    groups: dict[str, list[str]] = defaultdict(list)
    for row in methods(rows):
        changed = [f"`{key} = {value}`" for key, value in _training(row).items() if usual[key] != value]
        if changed:
            groups[", ".join(changed)].append(short(row))
    return "; ".join(f"{changed} ({', '.join(names)})" for changed, names in groups.items())


def _training(row: Row) -> dict[str, Any]:
    """Everything but the method's own options and the length, at which all are compared."""
    config = Config.from_dict(row.values)
    own = {"algorithm", "steps", *(f.name for f in fields(config.algorithm))}
    settings = {key: value for key, value in config.to_dict().items() if key not in own}
    return settings | {name: getattr(config.algorithm, name) for name in _ASKED_OF_THE_LOOP}
