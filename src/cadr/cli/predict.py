"""`cadr predict RUN DATA --out predictions.csv`: classes and calibrated probabilities for every row, in order."""

from __future__ import annotations

import shlex
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.flags import add_engine, engine_gpus
from cadr.cli.terminal import show_table
from cadr.utils.text import counted, listed

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers
    from cadr.inference.predict import Predicted


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "predict",
        usage="cadr predict RUN DATA --out predictions.csv [--top N] [--prior SHARES] [--labels FILE]",
        help="classes and probabilities for data of any size",
        description="Predict the class of every row of DATA with a trained run. The file holds a row for every row, in "
        "the same order, with the columns that identify it (or the file's name, or its number), the class and its "
        "probability, the next best classes, and where DATA has labels whether the model disagrees with them. "
        "Probabilities are calibrated on the labels that training has held out. Data are read and written piece by "
        "piece: millions of rows need no more memory than thousands.",
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument(
        "data", metavar="DATA", help="a folder of images, one image, or an .npz, .npy, CSV or Parquet file"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where to write: a name that ends in .csv or .parquet"
    )
    parser.add_argument("--top", type=int, default=3, metavar="N", help="how many classes to name (default: 3)")
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="CSV of file,label for a folder of images, or labels of an .npy, to compare with",
    )
    parser.add_argument(
        "--label-column",
        metavar="NAME",
        help="column of labels to compare with (default: that which the run was trained with)",
    )
    parser.add_argument(
        "--prior",
        metavar="SHARES",
        help="the classes' shares among these rows, if they are not those of the training data: cat=.2,dog=.8 (classes "
        "that are not named divide the rest), or estimated: from the rows themselves",
    )
    parser.add_argument("--root", metavar="FOLDER", help="where benchmarks lie (default: $CADR_DATA, else data/)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="only the I-th of N parts of the rows, to be predicted on several machines; CSV files of all parts, one "
        "after another (cat), are the file of all rows, as only the first has the names of the columns",
    )
    add_engine(parser, "predict")
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.errors import ConfigError
    from cadr.inference.predict import predict_file
    from cadr.inference.ray_predict import RayEngine
    from cadr.utils.shard import Shard

    gpus = engine_gpus(namespace)
    if gpus is not None and (namespace.shard is not None or namespace.device != "auto"):
        raise ConfigError("--engine ray shares out the rows and has --gpus; leave out --shard and --device")
    begun = time.perf_counter()
    found = predict_file(
        namespace.folder,
        namespace.data,
        namespace.out,
        top=namespace.top,
        labels=namespace.labels,
        label_column=namespace.label_column,
        prior=namespace.prior,
        root=namespace.root,
        device=namespace.device if gpus is None else "cpu",  # the workers predict
        engine=None if gpus is None else RayEngine(gpus),
        shard=None if namespace.shard is None else Shard.parse(namespace.shard),
        progress=_Progress(),
    )
    seconds = time.perf_counter() - begun
    _show(found)
    if found.shift is not None:
        print("\nThe classes' shares were changed:")
        show_table(["class", "training", "here"], found.shift.words(tuple(found.counts)))
    if found.shift_note:
        print(found.shift_note)
    print(f"\n{counted(found.rows, 'row')} in {seconds:.1f} s, written to {namespace.out}.")
    if found.caution:
        print(found.caution)
    if found.unseen:
        columns = "; ".join(f"{name!r} ({words})" for name, words in found.unseen.items())
        print(f"Categories unseen in training were treated as missing, in the column {columns}.")
    if found.labelled:
        print("\n".join(_compared(found, namespace.folder)))
    return 0


def _compared(found: Predicted, run: Path) -> list[str]:
    """What to make of labels that the model disagrees with, and of those that it does not."""
    look = ": look at the rows whose `disagrees` is yes, the most probable first"
    report = f"cadr report {shlex.quote(str(run))}"  # to be copied into a shell
    if found.held_out is None:
        where = look if found.disagreements else ""
        said = [f"Of {counted(found.labelled, 'label')} the model disagrees with {found.disagreements:,}{where}."]
        if found.lacking:
            lacking = listed(list(found.lacking))
            said.append(f"Among them are {found.lacking.total():,} whose label is not a class of the model: {lacking}.")
        return [*said, f"It repeats labels that it was trained on, right or wrong; for those see {report}."]
    held_out, wrong = found.held_out
    said = []
    if held_out:
        where = look if wrong else ""
        said.append(f"Of {counted(held_out, 'label')} held out the model disagrees with {wrong:,}{where}.")
    return [
        *said,
        f"Of {counted(found.labelled - held_out, 'label')} that it was trained on it disagrees with "
        f"{found.disagreements - wrong:,}, but it repeats such labels whether they are right or wrong: "
        f"{report} shows which may be wrong.",
    ]


def _show(found: Predicted) -> None:
    rows = max(1, found.rows)  # a part of little may be nothing
    lines = [[n, f"{c:,}", f"{100 * c / rows:.1f} %"] for n, c in found.counts.items()]
    show_table(["class", "predicted", "share"], lines)


class _Progress:
    """A line now and then on standard error, for data that take long."""

    def __init__(self) -> None:
        self.begun = self.spoke = time.monotonic()

    def __call__(self, rows: int) -> None:
        now = time.monotonic()
        if now - self.spoke > 10.0:
            print(f"{rows:,} rows, {rows / (now - self.begun):,.0f} a second", file=sys.stderr, flush=True)
            self.spoke = now
