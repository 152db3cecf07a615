"""A model card in Markdown: everything in it is read from the run, which is judged first if it never was."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

from torch import nn

from cadr.config import title_of
from cadr.data import validation
from cadr.data.sources.columns import Column, apart
from cadr.data.sources.images import DECODING
from cadr.embedding.encoder import PictureEncoder
from cadr.errors import CadrError
from cadr.inference.accuracy_notes import caution, caution_about_guess, over_classes, zero_recall
from cadr.inference.evaluation import evaluate_run
from cadr.inference.predictor import Predictor
from cadr.training.result import describe_run
from cadr.training.run_folder import RunFolder
from cadr.utils.text import counted, percent, printable

_JUDGED = {"test": "the test set", "held_out": "training rows held out", "validation": "labels held out from training"}
_JUDGED["cross_fitted"] = "the labels, each predicted by a fit that had not seen it"


def model_card(
    run: Path,
    predictor: Predictor,
    files: list[str],
    model: nn.Module | None,
    backbone: PictureEncoder | None = None,
) -> str:
    """`model` is the module of the user's own that the run was trained with, if it was.

    The `backbone` of a run on features of pictures is inside the exported programs.
    """
    spec, config = predictor.spec, predictor.config
    own = "learners without a network" if config.is_instant else "a module of the user's own"
    network = own if config.model is None else title_of(config.model)
    facts = describe_run(config, Path(config.data).name, network, None)
    # An interrupted run has records of steps beyond its checkpoint, which will be done again, or was judged before it.
    records = [record for record in RunFolder(run).checked_records() if record["step"] <= predictor.step]
    last = next((record for record in reversed(records) if record["kind"] == "evaluation"), None)
    unknown = ""
    if last is None:
        last, unknown = _judged_now(run, predictor, model)
    prior = next((record["prior"] for record in reversed(records) if "prior" in record), None)
    labelled = sum(spec.labels)
    commit = f", cadr at commit {facts['commit']}" if facts["commit"] else ""
    return "\n".join(
        [
            f"# {len(spec.class_names)} classes from {_kind(predictor)}",
            "",
            f"Trained with {facts['algorithm']} ({network}, {_steps(predictor)}, seed {facts['seed']}) on "
            f"{facts['dataset']}: {spec.rows} rows, of which {labelled} have a label "
            f"({percent(100 * labelled / spec.rows)}).",
            "",
            "## Classes",
            "",
            *_class_table(predictor, last, prior),
            "",
            "The estimated share is the method's own estimate of the class distribution of all rows, from training. "
            "Where the two shares differ, labels are missing more often for some classes than for others, or the "
            "estimate is wrong: it is as good as the predictions.",
            "",
            "## Evaluation",
            "",
            unknown if last is None else _accuracy(predictor, last),
            *_calibration(predictor),
            "",
            "## Use",
            "",
            f"- Input: {_input(predictor, backbone)}.",
            "- Output: the probability of each class, in the order of the table.",
            *([f"- Files: {', '.join(files)}."] if files else []),
            *_encoding(predictor),
            "",
            "## Limits",
            "",
            "- The method assumes that whether a label is missing depends on the class alone.",
            "- Recall of a class with few held-out labels is uncertain; a dash means that none was held out.",
            "- On data from elsewhere neither accuracy nor calibration need hold.",
            "",
            "## Settings",
            "",
            "```toml",
            config.to_toml().strip(),
            "```",
            "",
            f"PyTorch {facts['torch']}{commit}.",
            "",
        ]
    )


def _kind(predictor: Predictor) -> str:
    shape = predictor.spec.shape
    if predictor.spec.raw is not None:
        return f"{predictor.spec.raw}, by the {shape[0]} features of {_pretrained(predictor)}"
    return f"images of {shape[1]}×{shape[0]} pixels" if predictor.spec.kind == "image" else f"{shape[0]} features"


def _pretrained(predictor: Predictor) -> str:
    return _cell(Path(predictor.config.source.features or "a pretrained model").as_posix())


def _input(predictor: Predictor, backbone: PictureEncoder | None) -> str:
    shape = ", ".join(map(str, predictor.spec.shape))
    if backbone is not None:
        height, width = backbone.preprocessing.crop
        return (
            f"pictures, uint8 (n, {height}, {width}, 3), resized as the file says under `resize`; "
            f"{_pretrained(predictor)}, which makes features of them, is inside. Image files are read as they were for "
            f"training: {DECODING}"
        )
    if predictor.spec.raw is not None:
        return (
            f"features of {predictor.spec.raw}, float32 (n, {shape}), as {_pretrained(predictor)} makes them, which is "
            f"not inside (sha256 {predictor.spec.pretrained}); `cadr embed` computes them, and `cadr predict` takes "
            f"{predictor.spec.raw} themselves"
        )
    if predictor.spec.kind == "image":
        size = predictor.config.source.image_size
        as_they_are = "as they are" if size is None else f"of any size, resized bilinearly to {size}×{size} pixels"
        return (
            f"RGB images {as_they_are}, uint8 (n, {shape}); scaling of the values is part of the exported model. "
            f"Image files are read as they were for training: {DECODING}"
        )
    names = predictor.spec.feature_names
    order = "" if names is None else f", in this order: {', '.join(names[:8])}" + (", …" if len(names) > 8 else "")
    made = "as they are" if predictor.spec.columns is None else "made of columns as said below"
    return f"features {made}, float32 (n, {shape}){order}; standardising is part of the exported model"


def _encoding(predictor: Predictor) -> list[str]:
    """How a table with words, dates or gaps becomes features; `cadr predict` does it by itself."""
    lines = []
    for column in predictor.spec.columns or ():
        features = number = _number(column)
        if column.texts is not None:
            features = f"the text, as {_pretrained(predictor)} embeds it"
        elif column.words is not None:
            features = f"1 for the word that the cell is, 0 for the others: {', '.join(map(apart, column.words))}"
        elif column.fill is not None:
            features = f"{number}, or {column.fill:.9g} where it is missing; 1 where it is missing, else 0"
        lines.append(f"| {_cell(column.name)} | {len(column.features)} | {_cell(features)} |")
    head = ["", "The features are made of the columns of a table, in this order:", ""]
    tail = []
    if any(column.texts is not None for column in predictor.spec.columns or ()):
        tail = [
            "",
            f"{_pretrained(predictor)}, which embeds texts, is not inside (sha256 {predictor.spec.pretrained}); it "
            "takes `pip install 'cadr[features]'`, with which `cadr predict` takes the table itself.",
        ]
    return [*head, "| column | features | what they are |", "|---|--:|---|", *lines, *tail] if lines else []


def _number(column: Column) -> str:
    if column.since is not None:
        return f"the days since {column.since}, times in UTC"
    return "the number" if column.offset is None else f"the number less {column.offset!r}, taken off in 64 bits"


def _class_table(predictor: Predictor, last: dict[str, Any] | None, prior: list[float] | None) -> list[str]:
    spec = predictor.spec
    lines = ["| class | labels | share of the labels | estimated share of all rows | recall |", "|---|--:|--:|--:|--:|"]
    for i, name in enumerate(spec.class_names):
        recall = None if last is None else last["recall"][i]
        share = "–" if prior is None else percent(100 * prior[i])
        shown = "–" if recall is None else f"{recall:.1f} %"
        labels = percent(100 * spec.labels[i] / sum(spec.labels))
        lines.append(f"| {_cell(name)} | {spec.labels[i]} | {labels} | {share} | {shown} |")
    return lines


def _cell(name: str) -> str:
    """A name as it is, in Markdown, where some signs set type or draw tables."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", printable(name))


def _steps(predictor: Predictor) -> str:
    steps = predictor.config.training.steps
    if predictor.config.is_instant:
        return "fitted in one go"
    return f"{steps} steps" if predictor.step == steps else f"{predictor.step} of {steps} steps: not finished"


def _judged_now(run: Path, predictor: Predictor, model: nn.Module | None) -> tuple[dict[str, Any] | None, str]:
    """An evaluation of a run that was stopped before its first, or why there is none."""
    if predictor.step == predictor.config.training.steps:
        return None, "Nothing was held out to evaluate it on."
    then = "Nothing was held out either."
    try:
        if (run / validation.FILE).exists():
            held = counted(len(validation.read(run / validation.FILE)), "label")
            then = f"It holds out {held}, on which `cadr evaluate` evaluates it if the data are unchanged."
        return evaluate_run(run, model=copy.deepcopy(model)), ""  # a copy: evaluating gives it back its training head
    except (CadrError, OSError) as error:
        reason = str(error).rstrip(".")
        return None, f"The run was stopped before it was evaluated, and it cannot be evaluated now: {reason}. {then}"


def _accuracy(predictor: Predictor, last: dict[str, Any]) -> str:
    examples = sum(map(sum, last["confusion"]))
    early = f"That was at step {last['step']}, and the model has been trained further since."
    words = [
        f"Accuracy {last['accuracy']:.1f} %, geometric mean of the recalls of {over_classes(last['recall'])} "
        f"{last['gm']:.1f} %, on {counted(examples, 'example')}: {_JUDGED[last['on']]}.",
        zero_recall(last["recall"]),
        "" if last["step"] == predictor.step else early,
        caution_about_guess(last, list(map(_cell, predictor.spec.class_names))),
        caution(last["accuracy"], examples, last["on"]),
    ]
    return " ".join(filter(None, words))


def _calibration(predictor: Predictor) -> list[str]:
    calibration, lines = predictor.calibration, []
    if calibration.changes and calibration.error_before is not None and calibration.error_after is not None:
        lines = [
            "",
            f"Probabilities are calibrated on {calibration.examples} held-out labels, weighted by the inverse of the "
            f"propensity of their class: expected calibration error {calibration.error_before:.1f} % before, "
            f"{calibration.error_after:.1f} % after (cross-fitted).",
        ]
    return [*lines, "", calibration.caution] if calibration.caution else lines
