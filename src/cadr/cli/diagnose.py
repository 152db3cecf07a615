"""`cadr diagnose DATA`: are the labels biased, how much, and what does that cost?"""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.flags import add_source, open_source
from cadr.cli.terminal import show_table
from cadr.diagnosis.result import TRIM
from cadr.utils.progress import fancy

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers
    from cadr.data import Pool
    from cadr.diagnosis.result import Diagnosis


_BY_PIXELS = (
    "This is a linear classifier on raw pixels, which tells little about photographs: add --features NAME, such as "
    "facebook/dinov2-small, for the features of a pretrained model."
)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "diagnose",
        help="how biased are the labels?",
        description="Test whether labels are missing at random, without training a network: class shares among the "
        "unlabelled rows and labelling propensities, with 90 % intervals, a test, and checks of the assumptions. A "
        "label is missing where it is blank or -1.",
    )
    add_source(parser)
    parser.add_argument("--split", type=Path, metavar="FILE", help="diagnose a benchmark under this split.json")
    parser.add_argument(
        "--unlabelled-classes",
        nargs="+",
        default=[],
        metavar="NAME",
        help="classes that exist but have no label yet, which the labels themselves cannot show",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of folds and resampling (default: 0)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    group = parser.add_argument_group("weights for other analyses")
    group.add_argument(
        "--weights-out",
        type=Path,
        metavar="FILE",
        help="write every row's probability of being labelled, and the weight that undoes the bias, to this CSV (and "
        "those of the classes beside it)",
    )
    group.add_argument(
        "--trim",
        type=float,
        default=TRIM,
        metavar="X",
        help=f"times the mean weight, above which a weight is cut (default: {TRIM:g})",
    )
    group.add_argument(
        "--replicates",
        type=int,
        default=0,
        metavar="N",
        help="replicate weights, for standard errors that know that propensities are estimates (default: 0)",
    )
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.data import Split, apply
    from cadr.data.description import column_warnings
    from cadr.diagnosis.diagnose import diagnose
    from cadr.errors import ConfigError

    if namespace.seed < 0:
        raise ConfigError(f"--seed: expected a whole number from 0, got {namespace.seed}")
    _check_free(namespace)
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
    if namespace.weights_out is not None:
        _write_weights(namespace, pool)
    return 0


def _check_free(namespace: Namespace) -> None:
    from cadr.diagnosis.weights import classes_file
    from cadr.errors import ConfigError
    from cadr.utils.files import expand_home

    if namespace.weights_out is None:
        return
    given = [expand_home(path) for path in (namespace.data, namespace.labels) if path is not None]
    for path in (namespace.weights_out, classes_file(namespace.weights_out)):
        if path.exists() and any(each.exists() and path.samefile(each) for each in given):
            raise ConfigError(f"{path} is what to diagnose; write the weights to another file")


def _write_weights(namespace: Namespace, pool: Pool) -> None:
    """To standard error where standard output is JSON."""
    from cadr.diagnosis.weights import row_weights, words, write_weights

    options = {"seed": namespace.seed, "trim": namespace.trim, "replicates": namespace.replicates}
    weights = row_weights(pool, **options)
    files = write_weights(namespace.weights_out, weights)
    to = sys.stderr if namespace.json else sys.stdout
    for line in words(weights):
        print(line, file=to)
    print(f"Weights of rows are in {files[0]}, those of classes in {files[1]}.", file=to)


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
