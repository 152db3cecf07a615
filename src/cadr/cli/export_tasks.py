"""`cadr export-tasks RUN --to label-studio`: what is worth labelling, as tasks for an annotation tool."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.label import MOST, ROWS

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers

_DESCRIPTION = (
    "Write the unlabelled examples whose labels are worth most as tasks for Label Studio (JSON) or CVAT (XML for "
    "images), with the model's guesses and probabilities. cadr label RUN --from FILE takes over what they export."
)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "export-tasks",
        usage="cadr export-tasks RUN --to label-studio|cvat --out FILE",
        help="what is worth labelling, for Label Studio or CVAT",
        description=_DESCRIPTION,
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--to", required=True, metavar="TOOL", help="label-studio or cvat")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write: tasks.json, tasks.xml")
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help=f"examples to ask for (default: {MOST})")
    parser.add_argument(
        "--rows", type=int, default=ROWS, metavar="N", help=f"unlabelled examples to choose among (default: {ROWS})"
    )
    parser.add_argument(
        "--images",
        metavar="ADDRESS",
        help="what stands before a picture's name where Label Studio finds it, as https://host/photos/ (default: its "
        "local files, with the folder above the data's as their root)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.label.tasks import write_tasks

    options = {"most": namespace.most, "rows": namespace.rows, "images": namespace.images, "device": namespace.device}
    for path in write_tasks(namespace.folder, namespace.to, namespace.out, **options):
        print(f"{path} ({path.stat().st_size / 1024:,.0f} KiB)")
    return 0
