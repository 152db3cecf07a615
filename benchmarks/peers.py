"""Images a second of other people's FixMatch beside ours: the same device, one after another in one run.

    PYTHONPATH=src python benchmarks/peers.py --peer NAME FOLDER COMMAND [--peer …] [--steps 200] [--out FILE]

COMMAND is what is run in FOLDER, a clone of theirs with its data where it looks for them, with its own defaults, its
loading of data included. For kekmodel/FixMatch-pytorch (MIT licence) and microsoft/Semi-supervised-learning (USB):

    --peer kekmodel ~/FixMatch-pytorch "train.py --num-labeled 40 --no-progress"
    --peer usb ~/Semi-supervised-learning "train.py --c one_gpu.yaml"

where one_gpu.yaml is a copy of its config/classic_cv/fixmatch/fixmatch_cifar10_40_0.yaml with gpu: 0,
multiprocessing_distributed: False and use_tensorboard: False. A folder that replaces what a machine lacks may be named
with --path. Nothing of theirs is copied here.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.step_time import make_step, pool  # noqa: E402

from cadr.training.feed import Inputs  # noqa: E402

PROCESS = Path(__file__).with_name("peer_process.py")
PUBLISHED, OURS = 2**20, 2**15  # FixMatch's steps, and ours in three minutes on the GPU of the records


def peer(folder: str, command: str, options: argparse.Namespace) -> float:
    """Milliseconds a step takes there."""
    with tempfile.TemporaryDirectory() as nowhere:
        out = Path(nowhere) / "time.json"
        counted = [str(out), str(options.warm), str(options.steps), options.device]
        line = [sys.executable, str(PROCESS), *counted, *shlex.split(command)]
        paths = [*options.path, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        ended = subprocess.run(line, cwd=folder, env=environment, stdout=sys.stderr)
        if ended.returncode or not out.exists():
            raise SystemExit(f"{command} in {folder} ended with status {ended.returncode}, and no time was noted.")
        return float(json.loads(out.read_text())["ms"])


def ours(options: argparse.Namespace) -> float:
    """Milliseconds a step of our FixMatch takes, with the network, batches and precision of our records."""
    step = make_step(Inputs.of(pool(), torch.device(options.device)), "fixmatch", batch=options.batch)
    step.advance(options.warm)
    _wait(options.device)
    begun = time.perf_counter()
    step.advance(options.steps)
    _wait(options.device)
    return float(1000.0 * (time.perf_counter() - begun) / options.steps)


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def lines(times: dict[str, float], images: int) -> list[str]:
    """A table: theirs beside ours, and what the published number of steps would take."""
    text = ["| | ms a step | images a second | ours is faster | 2^20 steps, hours | our 2^15 steps, minutes |"]
    text.append("|---|--:|--:|--:|--:|--:|")
    for name, ms in times.items():
        faster = f"{ms / times['ours']:.1f} ×"
        text.append(
            f"| {name} | {ms:.1f} | {1000 * images / ms:,.0f} | {faster} | {ms * PUBLISHED / 3.6e6:.1f} | "
            f"{ms * OURS / 6e4:.1f} |"
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", nargs=3, action="append", default=[], metavar=("NAME", "FOLDER", "COMMAND"))
    parser.add_argument("--path", action="append", default=[], metavar="FOLDER", help="before other Python paths")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warm", type=int, default=20, help="steps before the clock starts")
    parser.add_argument("--batch", type=int, default=64, help="labelled images a step of ours, as the peers are told")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    images = options.batch * (1 + 2 * 7)
    times = {"ours": ours(options)}
    times |= {name: peer(folder, command, options) for name, folder, command in options.peer}
    on_gpu = options.device.startswith("cuda")
    record: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "torch": torch.__version__,
        "images_per_step": images,
        "commands": {name: command for name, _, command in options.peer},
        "ms": {name: round(ms, 3) for name, ms in times.items()},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines(times, images)))


if __name__ == "__main__":
    main()
