"""A diagnosis for people: the verdict in two sentences, warnings, a table of the classes, bars, and summary figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from cadr.data.description import bar
from cadr.diagnosis.result import CAVEAT, ENOUGH, ClassDiagnosis, Diagnosis
from cadr.utils.text import html_table, percent, printable

NOTHING = "–"


def as_text(diagnosis: Diagnosis) -> str:
    """Everything, in plain text."""
    header, rows = class_table(diagnosis)
    parts = [diagnosis.verdict, _aligned([header, *rows]), *chart(diagnosis), "\n".join(closing(diagnosis))]
    return "\n\n".join(parts)


def as_html(diagnosis: Diagnosis) -> str:
    """Verdict, classes and warnings, for a notebook."""
    below = "".join(f"<p>{escape(printable(line))}</p>" for line in closing(diagnosis))
    return html_table(*class_table(diagnosis), diagnosis.verdict) + below


def finding(d: Diagnosis) -> str:
    """Whether labels are missing at random; names only classes that the intervals separate."""
    p = "p < 0.001" if d.p_value < 0.001 else f"p = {d.p_value:.3f}"
    if d.missing_at_random:
        if d.weak:
            return (
                "Nothing can be said of how labels are missing: the classes can hardly be told apart from these "
                f"features, and a test finds no difference between labelled and unlabelled rows ({p})."
            )
        if not d.checkable:
            return f"Nothing can be said of how labels are missing ({p})."
        return (
            f"There is no sign that labels are missing other than at random ({p}), though one class may be labelled "
            f"{_number(d.allowed_ratio)} times as often as another."
        )
    said = f"Labels are NOT missing at random ({p})"
    if d.weak or not d.checkable:
        return f"{said}."
    if d.apart is None:
        return f"{said}, but the intervals of the classes overlap: which are labelled too seldom cannot be said."
    least, most, at_least = d.apart
    ratio = f"about {_number(d.apart.ratio)} (at least {_number(at_least, down=True)}) times"
    return (
        f"{said}: class {least.name} is labelled {ratio} less often than class {most.name}, if the class alone decides."
    )


def meaning(d: Diagnosis) -> str:
    """What follows from the finding."""
    if not d.checkable:
        return "Label more rows: only one class has more than one label, so nothing of this could be checked."
    if d.weak and d.missing_at_random:
        return "So do not trust the estimates below: use better features, such as embeddings, or label more rows."
    if d.weak:
        return "But the classes can hardly be told apart from these features: do not trust the estimates below."
    if d.domain_auc > d.domain_limit:
        return "But the class alone does not explain which rows are labelled: take the estimates below as a hint."
    worth = f"The {d.labelled:,} labels are worth {d.worth} drawn at random"
    if d.missing_at_random:
        return f"{worth}, and methods that assume labels missing at random may be used."
    return f"{worth}; train with a method that corrects for the class, such as cadr train --algorithm cadr."


def _number(ratio: float, down: bool = False) -> str:
    """A ratio with the digits that mean something; as a lower bound it is rounded down."""
    digits = 0 if ratio >= 9.5 else 1
    return f"{(math.floor if down else round)(ratio * 10**digits) / 10**digits:,.{digits}f}"


def warnings(d: Diagnosis) -> tuple[str, ...]:
    """What to know before relying on the figures; a sentence or two each."""
    found = []
    names = {flag: [c.name for c in d.classes if c.flag == flag] for flag in ("not estimable", "few")}
    if names["not estimable"]:
        found.append(f"At most one label, nothing can be said: {_listed(names['not estimable'])}. Label a few more.")
    if names["few"]:
        found.append(f"Under {ENOUGH} labels, intervals may be too narrow: {_listed(names['few'])}.")
    if d.weak:
        found.append(
            f"Weak separability: {d.classifier} finds {100 * d.balanced_accuracy:.0f} % of a class on average, so "
            "shares and propensities cannot be trusted. Better features help, such as embeddings."
        )
    if d.other_than_class:
        found.append(d.other_than_class)
    if d.far_share > d.far_limit:
        doubted = d.weak or d.other_than_class
        found.append(
            f"There may be a class that nobody labelled: {100 * d.far_share:.0f} % of the unlabelled rows are far from "
            f"every label, where 10 % (at most {100 * d.far_limit:.0f} %) would be expected."
            + " But what the warning before this one says may be the reason."
            * bool(doubted)
        )
    return tuple(found)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


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
    d = diagnosis
    known = d.apart is not None and d.propensity_ratio is not None and d.extremes == d.apart[:2]
    ratio = f"; largest over smallest propensity {d.propensity_ratio:.1f}" if known else ""
    found = f"{100 * d.balanced_accuracy:.0f} %"
    fine = "fits" if d.domain_auc <= d.domain_limit else "does NOT fit"
    return [
        f"Effective number of labels: {d.worth} of {d.labelled:,}{ratio}.",
        f"Assumption that missingness depends on the class alone: {fine} (AUC {d.domain_auc:.3f}, a half is best, "
        f"limit {d.domain_limit:.3f}).",
        *([f"Classes told apart by {d.classifier}: {found} of a class found on average."] if d.checkable else []),
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
