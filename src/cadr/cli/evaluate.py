"""`cadr evaluate RUN`: the averaged model of a run on its test part, class by class."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadr.cli.terminal import show_table
from cadr.utils.text import counted

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers
    from cadr.inference.evaluation import UserLabels

_WHERE = {
    "test": ("test example", ""),
    "held_out": ("training row", " held out"),
    "validation": ("labelled row", " held out"),
    "cross_fitted": ("labelled row", ", each predicted by a fit without its label"),
}


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="evaluate a run, class by class",
        description="Evaluate the averaged model of a run, finished or not, on the test part of its data: accuracy, "
        "geometric mean over the classes, and for every class its recall and what it is mostly mistaken for.",
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.inference.accuracy_notes import caution, caution_about_guess, over_classes, zero_recall
    from cadr.inference.evaluation import judge
    from cadr.inference.predictor import Predictor, read_calibration
    from cadr.training.signature import InputSpec

    own = _own_labels(namespace.folder)
    scores, run = judge(namespace.folder, None if own is None else own.pool, None, namespace.device)
    spec = InputSpec.read(namespace.folder)
    columns, lines = class_table(scores, spec.labels)
    noun, rest = _WHERE[scores["on"]]
    show_table(columns, lines, title=f"{scores['dataset']}, {counted(scores['examples'], noun)}{rest}")
    print(
        f"\nAccuracy {scores['accuracy']:.2f} %, "
        f"geometric mean over {over_classes(scores['recall'])} {scores['gm']:.2f} %"
        + ("." if run.config.is_instant else f", after {scores['step']:,} of {scores['steps']:,} steps.")
    )
    words = [
        zero_recall(scores["recall"]),
        caution_about_guess(scores, scores["class_names"]),
        caution(scores["accuracy"], scores["examples"], scores["on"]),
    ]
    if own is not None:
        calibration = read_calibration(namespace.folder, spec)
        words += own.words(Predictor(run.model, spec, calibration, run.config, run.device, scores["step"]), scores)
    for line in filter(None, words):
        print(line)
    return 0


def _own_labels(folder: Path) -> UserLabels | None:
    from cadr.inference.evaluation import UserLabels
    from cadr.training.run_folder import RunFolder, located

    config = RunFolder.there(folder).config()
    return None if config is None else UserLabels.of(located(config, folder))


def class_table(scores: dict[str, Any], labels: Sequence[int]) -> tuple[list[str], list[list[str]]]:
    """A line per class; `labels` are the counts that there are, those held out included."""
    columns = ["class", "labels", "evaluated on", "recall, %", "mostly mistaken for"]
    lines = []
    for index, name in enumerate(scores["class_names"]):
        recall, row = scores["recall"][index], scores["confusion"][index]
        shown = "–" if recall is None else f"{recall:.1f}"
        mistaken = _mistaken(row, index, scores["class_names"])
        lines.append([name, str(labels[index]), str(sum(row)), shown, mistaken])
    return columns, lines


def _mistaken(row: list[int], index: int, names: list[str]) -> str:
    others = [0 if other == index else count for other, count in enumerate(row)]
    most = max(others)
    return f"{names[others.index(most)]} ({100 * most / sum(row):.1f} %)" if most else "–"
