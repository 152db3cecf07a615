"""`cadr export RUN`: the model for use elsewhere, and a card that says what it is."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "export",
        usage="cadr export RUN [--out FOLDER] [--formats NAME ...]",
        help="the model for use elsewhere, with a model card",
        description="Write the model of a run for use elsewhere: safetensors (weights, and a JSON file with classes "
        "and preprocessing), torch (torch.export, needs only PyTorch) and onnx (checked in onnxruntime against "
        "PyTorch), beside a model card. The torch and onnx files take raw examples and give calibrated probabilities.",
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to write (default: RUN/export)")
    parser.add_argument(
        "--formats",
        nargs="+",
        default=["safetensors", "torch"],
        metavar="NAME",
        help="what to write, out of safetensors, torch and onnx (default: safetensors torch)",
    )
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.inference.export import export_run

    out = namespace.out or namespace.folder / "export"
    for path in export_run(namespace.folder, out, tuple(dict.fromkeys(namespace.formats))):
        print(f"{path} ({path.stat().st_size / 1024:,.0f} KiB)")
    return 0
