"""The flags that say what DATA is, for the commands that look at data without training on them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cadr.data import Pool


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="DATA", help="a folder of images, an .npz, .npy, CSV or Parquet file, or a benchmark's name"
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="CSV of file,label for a folder, of row,label for a table or arrays; what Label Studio or CVAT export",
    )
    parser.add_argument("--label-column", default="label", metavar="NAME", help="column of labels (default: label)")
    parser.add_argument(
        "--ignore-columns",
        nargs="+",
        default=[],
        metavar="NAME",
        help="columns of a table that are no features: identifiers, dates, notes",
    )
    parser.add_argument("--image-size", type=int, metavar="N", help="resize images to N × N pixels")
    add_root(parser)


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", metavar="FOLDER", help="where benchmarks lie (default: $CADR_DATA, else data/)")


def open_source(namespace: argparse.Namespace) -> Pool:
    from cadr.data import open_data

    return open_data(
        namespace.data,
        root=namespace.root,
        labels=namespace.labels,
        label_column=namespace.label_column,
        image_size=namespace.image_size,
        ignore_columns=tuple(namespace.ignore_columns),
    )
