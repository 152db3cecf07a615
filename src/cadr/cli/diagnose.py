"""`cadr diagnose DATA`: are the labels biased, how much, and what does that cost?"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.flags import add_source, open_source
from cadr.cli.terminal import show_table
from cadr.utils.progress import fancy

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers
    from cadr.diagnosis.result import Diagnosis


_BY_PIXELS = (
    "This is what a linear classifier sees in pixels, which is little in photographs: add --features NAME, such as "
    "facebook/dinov2-small, and it sees what a pretrained model does."
)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "diagnose",
        help="how biased are the labels?",
        description="Find out whether labels are missing at random, without training a network: the classes' shares "
        "among the unlabelled rows and how often each class is labelled, with 90 % intervals, a test, and checks of "
        "what they rest on. A label is missing where it is blank or -1.",
    )
    add_source(parser)
    parser.add_argument("--split", type=Path, metavar="FILE", help="diagnose a benchmark under this split.json")
    parser.add_argument(
        "--unlabelled-classes",
        nargs="+",
        default=[],
        metavar="NAME",
        help="classes that are there, though nobody labelled an example; the labels cannot show that they are missing",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of folds and resampling (default: 0)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.data import Split, apply
    from cadr.data.description import column_warnings
    from cadr.diagnosis.diagnose import diagnose
    from cadr.errors import ConfigError

    if namespace.seed < 0:
        raise ConfigError(f"--seed: expected a whole number from 0, got {namespace.seed}")
    pool = open_source(namespace)
    if namespace.split is not None:
        pool = apply(pool, Split.read(namespace.split))
    if namespace.unlabelled_classes:
        pool = replace(pool, class_names=(*pool.class_names, *namespace.unlabelled_classes))
    diagnosis = diagnose(pool, seed=namespace.seed)
    if namespace.json:
        print(diagnosis.to_json())
    elif fancy():
        _draw(diagnosis)
    else:
        print(diagnosis)
    if not namespace.json:
        for line in column_warnings(pool):
            print(line)
        if pool.kind == "image":
            print(_BY_PIXELS)
    return 0


def _draw(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.text import Text

    from cadr.diagnosis.text import chart, class_table, closing

    console = Console(highlight=False)
    console.print(Text(diagnosis.verdict, style="bold"))
    show_table(*class_table(diagnosis))
    print(*chart(diagnosis), sep="\n")
    print()
    for line in closing(diagnosis):
        console.print(Text(line, style="yellow" if line.startswith("Warning") else ""))
