"""`cadr evaluate RUN`: the averaged model of a run on its test part, class by class."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadr.cli.table import show_table

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers

_WHERE = {"test": "test examples", "held_out": "training rows held out", "validation": "labelled rows held out"}


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
    from cadr.evaluate import evaluate_run

    scores = evaluate_run(namespace.folder, device=namespace.device)
    columns, lines = class_table(scores, _labels(namespace.folder / "split.json"))
    where = _WHERE[scores["on"]]
    show_table(columns, lines, title=f"{scores['dataset']}, {scores['examples']:,} {where}")
    print(
        f"\nAccuracy {scores['accuracy']:.2f} %, geometric mean over the classes {scores['gm']:.2f} %, "
        f"after {scores['step']:,} of {scores['steps']:,} steps."
    )
    return 0


def class_table(scores: dict[str, Any], labels: list[int] | None) -> tuple[list[str], list[list[str]]]:
    """A line per class; `labels` are the counts it was trained with, where they are known."""
    columns = ["class", "labels", "recall, %", "mostly mistaken for"]
    lines = []
    for index, name in enumerate(scores["class_names"]):
        recall = scores["recall"][index]
        line = [name, "" if labels is None else str(labels[index]), "–" if recall is None else f"{recall:.1f}"]
        lines.append([*line, _mistaken(scores["confusion"][index], index, scores["class_names"])])
    if labels is None:
        columns.pop(1)
        lines = [[line[0], *line[2:]] for line in lines]
    return columns, lines


def _mistaken(row: list[int], index: int, names: list[str]) -> str:
    others = [0 if other == index else count for other, count in enumerate(row)]
    most = max(others)
    return f"{names[others.index(most)]} ({100 * most / sum(row):.1f} %)" if most else "–"


def _labels(path: Path) -> list[int] | None:
    from cadr.data.split import Split

    return [int(count) for count in Split.read(path).counts] if path.exists() else None
