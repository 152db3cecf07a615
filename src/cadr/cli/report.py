"""`cadr report RUN [RUN …]`: one page to look at, that opens from disk and asks nobody for anything."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers

_ROWS = 10_000


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "report",
        help="write a page about one run or several",
        description="Write one HTML page about a run, or several side by side: how biased the labels are, accuracy and "
        "pseudo-labels class by class, thresholds and the class distribution over time, mistakes, calibration, labels "
        "to check, and examples worth labelling next. The page is a single file and needs no network.",
    )
    parser.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="folders that cadr train made")
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="FILE", help="the page (default: report.html)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument(
        "--rows",
        type=int,
        default=_ROWS,
        metavar="N",
        help=f"unlabelled examples looked at, to find those worth labelling (default: {_ROWS})",
    )
    parser.add_argument(
        "--to-label",
        type=Path,
        metavar="FILE",
        help="also write the unlabelled examples that the model, or the mean of several, is least sure of, as a CSV to "
        "fill in: their labels make it better soonest",
    )
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.report import write_report

    options = {"device": namespace.device, "rows": namespace.rows, "to_label": namespace.to_label}
    problems = write_report(namespace.folders, namespace.out, **options)
    for problem in problems:
        print(problem)
    size = namespace.out.stat().st_size / 1000
    print(f"Written to {namespace.out} ({size:,.0f} kB). Open it in any browser.")
    if namespace.to_label is not None:
        print(f"What to label is in {namespace.to_label}: fill in as many labels as you like, from the top.")
    return 0
