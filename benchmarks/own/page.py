"""docs/own-results.md: what the records of people's own data say, written from them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cells import markdown
from benchmarks.own.methods import PENALISED, SIMPLE
from benchmarks.own.missing import MISSINGNESS
from benchmarks.own.results import DEFAULT, Record, best_of, leads, standings, values
from benchmarks.own.sets import DECIDING, FINAL, KINDS, kind_of

BY_CLASS, AT_RANDOM = MISSINGNESS[:2], MISSINGNESS[2:]
WAYS = (("by class", BY_CLASS), ("at random", AT_RANDOM))
HALVES = (("looked at once", FINAL), ("deciding", DECIDING))
OURS = (DEFAULT, "cap_cai", "cadr")


def page(records: Sequence[Record], pictures: Sequence[Record], speed: Sequence[dict[str, Any]]) -> str:
    cells = len({(r["set"], r["missing"]) for r in records if r["method"] == DEFAULT})
    sets = len({r["set"] for r in records if r["method"] == DEFAULT})
    seeds = [len(of[DEFAULT]) for of in values(records, "accuracy").values() if DEFAULT in of]
    return f"""# What your own data are learned by, and how well

Tables, embeddings, and pictures and texts that a pretrained model has made vectors of, are learned by
`--algorithm {DEFAULT}`: logistic regression, linear discriminants, a random forest and label propagation, most of them
in rounds of class-aware imputation, stacked by cross-fitting, their predictions corrected to estimated class shares. It
takes seconds, and after choosing it uses every label. This page says how it does on {sets} real data sets; it is
written by `python benchmarks/own_data.py` from [its record](../benchmarks/own_data.jsonl), which has
[every figure](../benchmarks/own_data.md).

Each set's labels are missing in three ways: by class where classes are nearly as frequent as each other, by class where
they are not, and at random; {cells} cells, each drawn anew for {min(seeds)} to {max(seeds)} seeds. 97 to 1,234
labels, up to 60 to 1 by class. Judged on the true classes of the rows without a label, accuracy in %.
Half of the sets decided how the ensemble is made, by the hash of their names, and the others were looked at once.

## Against simple methods

The best simple method is the best of seven of scikit-learn (logistic regression plain and balanced, balanced random
forest and gradient boosting, SelfTraining of a balanced logistic regression, LabelSpreading with 7 and 20 neighbours),
chosen anew in every cell by the truth. Nobody who needs it could choose so well.

{_standing(records)}

Best or near: no method that has run with two seeds or more is better by more than a standard error. The mean lead over
each method everywhere, with its standard error over cells, all sets:

{_leads(records)}

Where it is more than two points behind the best simple one: {_behind(records)}.

## By kind of data

Mean accuracy; sets that were looked at once.

{_by_kind(records)}

## The paper's CADR is not it

{_networks(records)}
Where a network is trained on your own data and you name no algorithm, it is CAP + CAI, without the supplement of CADR.
On handwritten digits, too, it is ahead of CADR in [all six ways of losing labels](../benchmarks/RESULTS.md).
{_pictures(pictures)}{_speed(speed)}"""


def _standing(records: Sequence[Record]) -> str:
    lines = []
    for title, names in HALVES:
        for way, kinds in WAYS:
            some = [r for r in records if r["set"] in names and r["missing"] in kinds]
            found = standings(some, DEFAULT)
            if not found:
                continue
            ahead = [one.ahead for one in found.values()]
            accuracy = values(some, "accuracy")
            own = statistics.fmean(statistics.fmean(accuracy[c][DEFAULT].values()) for c in found)
            near = f"{sum(one.near for one in found.values())} of {len(found)}"
            behind = str(sum(a < -2 for a in ahead))
            lines.append(
                [f"{title}, missing {way}", f"{own:.1f}", f"{statistics.fmean(ahead):+.1f}", f"{min(ahead):+.1f}",
                 behind, near]
            )  # fmt: skip
    head = ["", "ensemble", "ahead of the best simple one", "least", "cells more than 2 behind", "best or near"]
    return markdown(head, lines)


def _leads(records: Sequence[Record]) -> str:
    found = [leads([r for r in records if r["missing"] in kinds], DEFAULT) for _, kinds in WAYS]
    rows = [
        [other, *(f"{of[other][0]:+.1f} ± {of[other][1]:.1f}" if other in of else "·" for of in found)]
        for other in dict.fromkeys((*SIMPLE, *PENALISED, *OURS[1:]))
        if any(other in of for of in found)
    ]
    return markdown(["ahead of", "missing by class", "at random"], rows)


def _behind(records: Sequence[Record]) -> str:
    found = {cell: one.ahead for cell, one in standings(records, DEFAULT).items() if one.ahead < -2}
    worst = sorted(found, key=lambda cell: found[cell])
    return "; ".join(f"{name}, {missing} ({found[name, missing]:+.1f})" for name, missing in worst) or "nowhere"


def _by_kind(records: Sequence[Record]) -> str:
    accuracy = values(records, "accuracy")
    lines = []
    for kind in KINDS:
        for way, kinds in WAYS:
            cells = [c for c in accuracy if c[0] in FINAL and kind_of(c[0]) == kind and c[1] in kinds]
            cells = [c for c in cells if DEFAULT in accuracy[c]]
            if not cells:
                continue
            line = [f"{kind}, missing {way}"]
            for method in ("logistic_balanced", "best simple", *OURS):
                means = []
                for cell in cells:
                    of = accuracy[cell]
                    name = best_of(of, SIMPLE) if method == "best simple" else method
                    seeds = of.get(name, {}).keys() & of[DEFAULT].keys()
                    if seeds:
                        means.append(statistics.fmean(of[name][s] for s in seeds))
                line.append(f"{statistics.fmean(means):.1f}" if len(means) == len(cells) else "·")
            lines.append(line)
    return markdown(["", "logistic_balanced", "best simple", *OURS], lines)


def _networks(records: Sequence[Record]) -> str:
    words = []
    for name in OURS[1:]:
        found = [leads([r for r in records if r["missing"] in kinds], DEFAULT).get(name) for _, kinds in WAYS]
        if found[0] is not None and found[1] is not None:
            cells = {(r["set"], r["missing"]) for r in records if r["method"] == name}
            seeds = len({r["seed"] for r in records if r["method"] == name})
            ran = f"In {len(cells)} cells, with {seeds} seed{'s' * (seeds > 1)}"
            words.append(
                f"{ran}, the ensemble is ahead of a network trained with `{name}` by {found[0][0]:.1f} ± "
                f"{found[0][1]:.1f} points\nwhere labels are missing by class, and by {found[1][0]:.1f} ± "
                f"{found[1][1]:.1f} at random."
            )
    return "\n".join(words)


def _pictures(pictures: Sequence[Record]) -> str:
    if not pictures:
        return ""
    rows = [
        [f"{r['method']} on {r['sees']}", r["missing"], str(r["labels"]), f"{r['accuracy']:.1f}", f"{r['seconds']:.0f}"]
        for r in pictures
    ]
    table = markdown(["", "labels missing", "labels", "accuracy", "processor s"], rows)
    return f"""
## Pictures from nothing

Without a pretrained model a network starts from nothing, and with a hundred labels that ends early. Pictures of
CIFAR-10 on a CPU, {", ".join(sorted({f"seed {r['seed']}" for r in pictures}))} (`python benchmarks/own_pictures.py`):

{table}

So give `--features` ([how](features.md)), or a GPU and hours ([results](results.md)).
"""


def _speed(speed: Sequence[dict[str, Any]]) -> str:
    if not speed:
        return ""
    rows = [
        [f"{s['rows']:,}", str(s["features"]), str(s["labels"]), f"{s['processor seconds']:.0f}", f"{s['seconds']:.0f}"]
        for s in speed
    ]
    table = markdown(["rows", "features", "labels", "processor s", "s, on two cores that many others used"], rows)
    return f"\n## Seconds\n\n{table}\n\n`python benchmarks/own_data_speed.py`; a line says how far a fit is.\n"


def write(root: Path, records: Sequence[Record]) -> None:
    """From the records that are there."""
    (root / "docs" / "own-results.md").write_text(of_files(root, records), encoding="utf-8")


def of_files(root: Path, records: Sequence[Record]) -> str:
    def there(name: str) -> list[dict[str, Any]]:
        path = root / "benchmarks" / name
        return list(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else []

    return page(records, there("own_pictures.json"), there("own_data_speed.json"))


def in_short(records: Sequence[Record]) -> str:
    """What the README says: labels missing by class, sets that were looked at once."""
    some = [r for r in records if r["set"] in FINAL and r["missing"] in BY_CLASS]
    found = standings(some, DEFAULT)
    mean = statistics.fmean(one.ahead for one in found.values())
    kinds = [statistics.fmean(one.ahead for c, one in found.items() if kind_of(c[0]) == kind) for kind in KINDS]
    worst = min(one.ahead for one in found.values())
    where = f"{abs(mean):.1f} points {'ahead of' if mean >= 0 else 'behind'}"
    each = ", ".join(f"{lead:+.1f} on {kind}" for kind, lead in zip(KINDS, kinds, strict=True))
    return (
        f"On {len({c[0] for c in found})} real sets with labels missing by class, through a pretrained model or as "
        f"tables, the default is {where} the best of seven simple methods in the mean ({each}) and {-worst:.1f} behind "
        "it at worst"
    )
