"""A diagnosis for people: the verdict, a table of the classes, bars, and what to mind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cadr.data.description import bar
from cadr.utils.text import percent

if TYPE_CHECKING:
    from cadr.diagnosis.result import ClassDiagnosis, Diagnosis

NOTHING = "–"


def as_text(diagnosis: Diagnosis) -> str:
    """Everything, in plain text."""
    header, rows = class_table(diagnosis)
    parts = [diagnosis.verdict, _aligned([header, *rows]), *chart(diagnosis), "\n".join(closing(diagnosis))]
    return "\n\n".join(parts)


def class_table(diagnosis: Diagnosis) -> tuple[list[str], list[list[str]]]:
    """Header and a row per class, in percent."""
    header = ["class", "labels", "of labels", "of unlabelled [90 %]", "labelled [90 %]", "note"]
    return header, [_row(c) for c in diagnosis.classes]


def _row(c: ClassDiagnosis) -> list[str]:
    note = "" if c.flag == "ok" else c.flag
    return [
        c.name,
        f"{c.labels:,}",
        percent(100 * c.labelled_share),
        _with_interval(c.share, c.share_interval, percent),
        _with_interval(c.propensity, c.propensity_interval, _propensity),
        note,
    ]


def _with_interval(value: float | None, bounds: tuple[float, float] | None, written: Callable[[float], str]) -> str:
    """'12.3 % [10.1, 14.5]'."""
    if value is None or bounds is None:
        return NOTHING
    low, high = (written(100 * bound).removesuffix(" %") for bound in bounds)
    return f"{written(100 * value)} [{low}, {high}]"


def _propensity(value: float) -> str:
    """Two digits that mean something, also for one in ten thousand."""
    return f"{value:.1f} %" if value >= 1 or value == 0 else f"{value:.2g} %"


def chart(diagnosis: Diagnosis) -> list[str]:
    """Two bars per class: its share of the labels, and its estimated share of the unlabelled rows."""
    largest = max(max(c.labelled_share, c.share or 0.0) for c in diagnosis.classes)
    width = max(len(c.name) for c in diagnosis.classes)
    lines = []
    for c in diagnosis.classes:
        lines.append(f"{c.name.ljust(width)}  labels      {bar(c.labelled_share / largest)}".rstrip())
        known = NOTHING if c.share is None else bar(c.share / largest)
        lines.append(f"{' ' * width}  unlabelled  {known}".rstrip())
    return ["\n".join(lines)]


def closing(diagnosis: Diagnosis) -> list[str]:
    """Summary figures, warnings and the caveat."""
    from cadr.diagnosis.result import CAVEAT

    d = diagnosis
    ratio = "" if d.propensity_ratio is None else f"; largest over smallest propensity {d.propensity_ratio:.1f}"
    found = f"{100 * d.balanced_accuracy:.0f} %"
    fine = "fits" if d.domain_auc <= d.domain_limit else "does NOT fit"
    return [
        f"Effective number of labels: {d.worth} of {d.labelled:,}{ratio}.",
        f"Assumption that missingness depends on the class alone: {fine} (AUC {d.domain_auc:.3f}, a half is best, "
        f"limit {d.domain_limit:.3f}).",
        *([f"Classes told apart by a linear classifier: {found} of a class found on average."] if d.checkable else []),
        *(f"Warning: {warning}" for warning in d.warnings),
        CAVEAT,
    ]


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    right = {1, 2}
    return "\n".join(
        "  ".join(
            cell.rjust(w) if k in right else cell.ljust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
