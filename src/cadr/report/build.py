"""From run folders to the page."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from cadr.config import CHOICES
from cadr.data.pool import Pool, contents_hash
from cadr.diagnosis.result import Diagnosis
from cadr.errors import CadrError, ConfigError, DataError
from cadr.inference.overwrite_guard import check_not_overwritten
from cadr.report.examples import named, with_cells, worth_labelling
from cadr.report.label_errors import Doubts, doubts
from cadr.report.labels import Labels, labels_of
from cadr.report.model_outputs import Look, look
from cadr.report.notes import Note, Weight, decide, notes
from cadr.report.query_export import check_free, together, write_to_label
from cadr.report.runs import ReportedRun, clean, command, read_runs, settings
from cadr.report.sections import (
    Classes,
    beliefs,
    by_class,
    calibration_cautions,
    ensembles,
    estimated_shares,
    learning,
    mistakes,
    name_of,
    pseudo_labels,
    summaries,
)
from cadr.training import checkpoint
from cadr.training.plan import Opened
from cadr.training.prepare import fingerprint
from cadr.training.run_folder import located
from cadr.utils.files import atomic_write
from cadr.utils.optional_imports import optional_import

EXAMPLES = 12
DOUBTS = 24  # labels of a kind that may be wrong
ROWS = 10_000

_WHY_NEXT = (
    "The unlabelled examples whose labels would make the estimated loss most certain, each with its share of what is "
    "uncertain; for a better model, label those that it is least sure of (cadr label, or cadr report --to-label)."
)


def write_report(
    runs: Sequence[Path | str],
    out: Path | str,
    *,
    pool: Pool | None = None,
    model: nn.Module | None = None,
    device: str = "auto",
    rows: int = ROWS,
    to_label: Path | str | None = None,
    diagnosis: Diagnosis | None = None,
) -> list[str]:
    """Write the report on `runs` to the file `out`; what had to be left out, or is to be known, comes back in words.

    `pool` and `model` are for runs that were trained on a pool or a network of your own; a `diagnosis` of these data
    is not made again. At most `rows` unlabelled
    examples are looked at. Those that the model is least sure of, or the mean of several, are written to the table
    `to_label`.
    """
    if not runs:
        raise ConfigError("a report needs at least one run; name the folder of one")
    if rows < 0:
        raise ConfigError(f"rows must be at least 0, got {rows}")
    read = read_runs([Path(run) for run in runs])
    other = next((run for run in read if run.spec.class_names != read[0].spec.class_names), None)
    if other is not None:
        raise ConfigError(
            f"runs of one report must have the same classes, but {other.name} has not those of {read[0].name}; write a "
            "report on each"
        )
    written = [Path(out)] if to_label is None else [Path(out), Path(to_label)]
    for run in read:
        check_not_overwritten(run.config, run.path, *written)
    if len(read) == 1:  # a page on a single run that no other command takes any more would look as if all were well
        checkpoint.newest(read[0].path)
    if to_label is not None:
        check_free(Path(to_label), Path(out))
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)  # before the work, which would be lost if it cannot be
    looks, problems = _look_all(read, pool, model, device, rows)
    read = [r.at(looks[r.name].step, looks[r.name].evaluation) if r.name in looks else r for r in read]
    page = render(_content(read, looks, problems, Path(out), diagnosis))
    with atomic_write(Path(out)) as new:
        new.write_text(page, encoding="utf-8")
    if to_label is None:
        return problems
    if why := problems or _nothing_to_label(*looks.values()):
        raise DataError(f"The page is written to {out}, but {to_label} is not. {why[0]}")
    return write_to_label(Path(to_label), together(list(looks.values())))


def _nothing_to_label(look: Look, *others: Look) -> list[str]:
    if any(_labels_key(other) != _labels_key(look) for other in others):
        return ["What to label can be asked of one run, or of several on the same data and labels."]
    if len(look.unlabelled):
        return []
    return ["No unlabelled example was looked at (rows is 0)." if look.num_unlabelled else "Every example has a label."]


def _look_all(
    runs: Sequence[ReportedRun], pool: Pool | None, model: nn.Module | None, device: str, rows: int
) -> tuple[dict[str, Look], list[str]]:
    """By run name. A report without pictures is better than none: what cannot be opened again is said and left out."""
    looks: dict[str, Look] = {}
    problems, opened = [], Opened(pool)
    for run in runs:
        try:
            looks[run.name] = look(run, _pool(run, opened), model, device, rows)
        except (CadrError, OSError) as error:
            problems.append(
                f"The data or the model of {run.name} could not be opened again, so that its labels and examples are "
                f"not shown: {clean(str(error))}"
            )
    return looks, problems


def _pool(run: ReportedRun, opened: Opened) -> Pool | None:
    """The data, which several runs may share; where they cannot be opened, `look` says what to do."""
    try:
        return opened.pool(located(run.config, run.path))
    except (CadrError, OSError):
        return None


def _content(
    runs: Sequence[ReportedRun], looks: dict[str, Look], problems: Sequence[str], out: Path, diagnosis: Diagnosis | None
) -> dict[str, Any]:
    names = runs[0].class_names
    groups = _labels(runs, looks, diagnosis)
    counts = {run.spec.labels for run in runs}
    labels = list({id(group): group for group in groups.values()}.values())
    diagnosed = [group for group in labels if group.diagnosed]
    propensity = diagnosed[0].estimated if len(labels) == len(diagnosed) == 1 else None
    classes = Classes(names, counts.pop() if len(counts) == 1 else None, propensity)
    known = [run for run in runs if run.is_benchmark or (run.name in looks and looks[run.name].truth_is_known)]
    body = [
        {"anchor": "ensemble", "name": "Ensemble", "figures": ensembles(runs)},
        {"anchor": "learning", "name": "Accuracy", "figures": learning(runs, classes)},
        {"anchor": "pseudo-labels", "name": "Pseudo-labels", "figures": pseudo_labels(known, classes)},
        {"anchor": "beliefs", "name": "Thresholds and P̂", "figures": beliefs(runs, classes)},
        {"anchor": "shares", "name": "Class shares", "figures": estimated_shares(runs, classes)},
        {"anchor": "mistakes", "name": "Mistakes", "figures": mistakes(runs, classes, looks)},
    ]
    body = [section for section in body if section["figures"]]
    # where predictions are judged, the reliability diagram says it
    unjudged = calibration_cautions(runs, {name: one for name, one in looks.items() if one.on_part is None})
    dataset = next((r.finished["dataset"] for r in runs if r.finished), runs[0].config.data)
    sections = [("labels", "Labels")] if labels else []
    sections += [(str(section["anchor"]), str(section["name"])) for section in body]
    sections += [("examples", "Examples")] if looks else []
    sections += [("classes", "Classes"), ("settings", "Settings"), ("reproduce", "Reproduce")]
    return {
        "title": f"{clean(str(dataset))}: " + (runs[0].name if len(runs) == 1 else f"{len(runs)} runs"),
        "subtitle": _subtitle(runs),
        "sections": sections,
        "runs": runs,
        "labels": labels,
        "decision": decide(
            [
                *notes(runs, groups, looks),
                *(Note(Weight.CHECK, problem) for problem in problems),
                *(Note(Weight.KNOW, words) for words in unjudged),
            ],
            runs,
        ),
        "summaries": summaries(runs),
        "body": body,
        "looks": [_examples(run, runs, looks[run.name], groups[run.name], names) for run in runs if run.name in looks],
        "why_next": _WHY_NEXT,
        "by_class": by_class(runs, known, classes),
        "settings": sorted(settings([run.config for run in runs]), key=lambda row: not row[2]),
        "reproduce": [_reproduce(run) for run in runs],
        "report_command": shlex.join(["cadr", "report", *(clean(str(r.path)) for r in runs), "--out", clean(str(out))]),
    }


def _labels(runs: Sequence[ReportedRun], looks: dict[str, Look], diagnosis: Diagnosis | None) -> dict[str, Labels]:
    """By run name; runs on the same labels share one."""
    same: dict[tuple[str, str], list[ReportedRun]] = {}
    for run in runs:
        if run.name in looks:
            same.setdefault(_labels_key(looks[run.name]), []).append(run)
    found = {}
    for group in same.values():
        of = ", ".join(run.name for run in group) if len(same) > 1 else ""
        found.update(dict.fromkeys((run.name for run in group), labels_of(looks[group[0].name], group, of, diagnosis)))
    return found


def _labels_key(look: Look) -> tuple[str, str]:
    return fingerprint(dataclasses.replace(look.pool, labels=look.labels)), contents_hash(look.pool.examples)


def _examples(
    run: ReportedRun, runs: Sequence[ReportedRun], one: Look, labels: Labels, names: tuple[str, ...]
) -> dict[str, Any]:
    seen = len(one.unlabelled)
    among = f"all {seen:,}" if seen == one.num_unlabelled else f"{seen:,} of the {one.num_unlabelled:,}"
    doubted, asked = doubts(one, names, DOUBTS), worth_labelling(one, labels.propensity, names, EXAMPLES)
    *of_doubted, asked = with_cells(run.config, one, [*(kind.examples for kind in doubted), asked])
    return {
        "of": name_of(run, runs),
        "seen": seen,
        "named": named(one, names),
        "doubts": [Doubts(kind.words, shown) for kind, shown in zip(doubted, of_doubted, strict=True)],
        "next": asked,
        "next_note": f"Chosen among {among} unlabelled examples.{_believed(labels)}"
        if seen
        else _nothing_to_label(one)[0],
    }


def _believed(labels: Labels) -> str:
    """The list needs a φ of every class, also where the page shows none: so it says where that is from."""
    if None not in labels.estimated:
        return ""
    which = "classes with at most one label" if labels.diagnosed else "the classes"
    return f" As φ of {which} cannot be estimated, it is taken from the run's own P̂."


def _reproduce(run: ReportedRun) -> dict[str, str]:
    result = run.finished
    facts = []
    if result is None:
        facts.append(f"not finished: step {run.step:,} of {run.config.training.steps:,}")
    else:
        names = {"commit": "cadr at commit", "torch": "torch", "device": "on", "split_sha256": "split"}
        facts += [f"{name} {result[key]}" for key, name in names.items() if result[key]]
        if result["model"] not in CHOICES["model"] and not run.config.is_instant:
            facts.append(f"trained from Python with a network of its own, {result['model']}")
    return {"name": run.name, "command": clean(command(run.config, str(run.path))), "facts": "; ".join(facts) + "."}


def _subtitle(runs: Sequence[ReportedRun]) -> str:
    spec = runs[0].spec
    return f"{spec.rows:,} examples, {sum(spec.labels):,} of them labelled, {len(spec.class_names)} classes."


def render(content: dict[str, Any]) -> str:
    jinja2 = optional_import("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cadr.report", "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html").render(content)
    return page
