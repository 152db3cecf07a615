"""`cadr embed DATA --features NAME --out X.npz`: pictures or texts as vectors, for here or for elsewhere."""

from __future__ import annotations

import shlex
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.flags import add_source, open_source

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "embed",
        usage="cadr embed DATA --features NAME --out X.npz [flags]",
        help="pictures or texts as vectors of a pretrained model",
        description="Write what a pretrained model makes of pictures or texts to an .npz: x, or x_train and x_test, "
        "with the labels as y (-1: missing) and class_names where there are labels, and what the rows are called as "
        "ids. Vectors are kept in the user's cache, so that what was stopped goes on where it was, and no other "
        "command computes them again. Commands that take --features need no such file.",
    )
    add_source(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="X.npz", help="where to write")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="only the I-th of N parts of what nobody has labelled; np.concatenate joins the arrays of all parts",
    )
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.data.embedded_file import arrays_of, without_labels, write
    from cadr.embedding.registry import Pretrained
    from cadr.errors import ConfigError
    from cadr.utils.files import expand_home
    from cadr.utils.shard import Shard

    if namespace.features is None:
        raise ConfigError("embed needs --features NAME: a pretrained model's Hugging Face name, folder or .onnx file")
    out, data = expand_home(namespace.out), expand_home(namespace.data)
    if out.suffix.lower() != ".npz":
        raise ConfigError(f"{namespace.out}: vectors are written to a file that ends in .npz")
    if out.exists() and data.exists() and out.samefile(data):
        raise ConfigError(f"{namespace.out} is what to embed; write the vectors to another file")
    begun = time.perf_counter()
    labels = None if namespace.labels is None else expand_home(namespace.labels)
    shard = None if namespace.shard is None else Shard.parse(namespace.shard)
    arrays = without_labels(data, labels, Pretrained.find(namespace.features, namespace.device), shard)
    words = "without labels"
    if arrays is None and shard is not None:
        raise ConfigError(
            f"--shard: {namespace.data} has labels, or is a table; parts are of plain folders and .npy files"
        )
    if arrays is None:
        pool = open_source(namespace)
        arrays = arrays_of(pool)
        words = f"{pool.num_labelled:,} of them labelled, of {pool.num_classes} classes"
    rows, width = next(iter(arrays.values())).shape
    write(out, arrays)
    print(f"{rows:,} rows of {width:,} features, {words}, written to {out} in {time.perf_counter() - begun:.1f} s.")
    print(f"Next: cadr {'predict RUN' if words == 'without labels' else 'diagnose'} {shlex.quote(str(out))}")
    return 0
