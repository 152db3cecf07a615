"""How much of the package a reader must open: files and lines, what one command runs, where an example passes through.

    python benchmarks/measures.py             # prints the measures of this tree
    python benchmarks/measures.py --as after  # and keeps them in measures.json, under that name

The rules, for `cadr train photos/ --labels labels.csv` on 90 pictures of 13×13 pixels, of which 37 have a label, in 8
steps on a CPU, and for the page of `cadr report` on that run:

- *files* and *lines*: all of `src/**/*.py`, blank lines and comments included; *rooms* says so of every folder, and
  *as before* of what is left without `NEW`: the folders and files of features that the tree *before* did not have.
- *imported*: files of `src/cadr` that the command imports. *run*: those of which it calls a function, in any thread.
  The bodies of modules and classes, and what a comprehension runs, are no functions.
- *example*: files with a function that the command, or the report after it, hands an example or gets one from: an array
  or a tensor of at least three dimensions with sides of 13 pixels and 3 channels, in whatever order and however many of
  them, as an argument or result, or an attribute, item or value of one. These are the stops on an example's way from
  its file to the report; *functions* counts the functions, and *hops* those that hand an example on: as their result.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "cadr"
RECORD = Path(__file__).with_suffix(".json")
SIDE, ROWS, LABELS = 13, 90, (22, 10, 5)
NEW = (  # pretrained models, ensembles, labelling, tracking, weights, populations, GPUs, what training estimates
    "embedding",
    "ensemble",
    "label",
    "training/tracking",
    "algorithms/simclr.py",
    "api.py",
    "cli/embed.py",
    "cli/export_tasks.py",
    "cli/label.py",
    "data/embedded_file.py",
    "data/raw.py",
    "data/replicates.py",
    "data/sources/hf_dataset.py",
    "data/sources/label_exports.py",
    "data/sources/more_labels.py",
    "data/sources/text_folder.py",
    "data/sources/texts.py",
    "diagnosis/weights.py",
    "estimate/running_shares.py",
    "inference/around_estimator.py",
    "inference/population.py",
    "models/pretrained.py",
    "models/synced_norm.py",
    "optim/muon.py",
    "training/distributed.py",
    "training/ensemble_run.py",
    "training/pace.py",
    "training/phases/asked.py",
    "training/phases/pretraining.py",
    "training/phases/share_estimates.py",
    "training/recovery.py",
    "training/threads.py",
    "training/warm_start.py",
    "utils/ranks.py",
    "utils/shard.py",
)
COMMAND = "train photos --labels labels.csv --out run --steps 8 --device cpu"


def lay_out(folder: Path) -> None:
    """photos/ and labels.csv: the first classes are labelled most."""
    random, left = np.random.default_rng(0), list(LABELS)
    (folder / "photos").mkdir()
    lines = ["file,label"]
    for i in range(ROWS):
        c = i % len(LABELS)
        pixels = random.integers(0, 80, (SIDE, SIDE, 3)) + 80 * np.eye(3, dtype=np.int64)[c]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / f"{i:03}.png")
        if left[c]:
            left[c] -= 1
            lines.append(f"{i:03}.png,{'abc'[c]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def is_example(value: Any, deep: bool = True) -> bool:
    """Whether it is pictures, or holds some directly."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):  # and not a description that has a shape
        found = tuple(value.shape)
        return found[-3:] in ((SIDE, SIDE, 3), (3, SIDE, SIDE))
    if not deep or isinstance(value, (str, bytes, int, float, type(None))):
        return False
    if isinstance(value, dict):
        return any(is_example(part, False) for part in value.values())
    if isinstance(value, (list, tuple)):
        return any(is_example(part, False) for part in value[:100])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(is_example(getattr(value, f.name, None), False) for f in dataclasses.fields(value))
    return type(value).__module__.startswith("cadr") and any(
        is_example(part, False) for part in getattr(value, "__dict__", {}).values()
    )


def observe() -> None:
    """In a process of its own: run the commands, and print what was run."""
    run, seen, hops = set[str](), set[tuple[str, str]](), set[tuple[str, str]]()
    prefix = str(PACKAGE) + os.sep

    def watch(frame: Any, event: str, result: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(prefix) or code.co_name.startswith("<"):
            return
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
            return
        name = code.co_filename.removeprefix(prefix)
        run.add(name)
        function = (name, code.co_qualname)
        if function not in seen:
            given = [result] if event == "return" else list(frame.f_locals.values())
            if any(map(is_example, given)):
                seen.add(function)
        if event == "return" and function not in hops and is_example(result):
            hops.add(function)

    from cadr.cli.main import main

    def cadr(command: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            threading.setprofile(watch)
            sys.setprofile(watch)
            status = main(command.split())
            sys.setprofile(None)
            threading.setprofile(None)
        assert status == 0, command

    cadr(COMMAND)
    imported = [m for m in list(sys.modules.values()) if (getattr(m, "__file__", None) or "").startswith(prefix)]
    measured = {"imported": len(imported), "run": len(run)}
    listed = sorted(run)
    cadr("report run --out report.html")
    print(json.dumps(measured | {"files": listed, "example": sorted(seen), "hops": sorted(hops)}))


def size(files: Iterable[Path]) -> dict[str, int]:
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
    return {"files": len(lengths), "lines": sum(lengths)}


def rooms(files: Iterable[Path]) -> dict[str, dict[str, int]]:
    """How large each folder is; what is in none is under `.`."""
    found: dict[str, list[Path]] = {}
    for path in sorted(files):
        found.setdefault(path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else ".", []).append(path)
    return {room: size(of_room) for room, of_room in found.items()}


def is_new(path: Path) -> bool:
    name = path.relative_to(PACKAGE).as_posix()
    return any(name == new or name.startswith(f"{new}/") for new in NEW)


def measures() -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures, and which files they count."""
    files = [path for path in PACKAGE.rglob("*.py") if path.is_file()]
    with tempfile.TemporaryDirectory() as name:
        lay_out(Path(name))
        environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
        program = [sys.executable, str(Path(__file__).resolve()), "--observe"]
        done = subprocess.run(program, cwd=name, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    return {
        **size(files),
        "imported": found["imported"],
        "run": found["run"],
        "example": len({file for file, _ in found["example"]}),
        "functions": len(found["example"]),
        "hops": len(found["hops"]),
        "as before": size(path for path in files if not is_new(path)),
        "rooms": rooms(files),
    }, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as", dest="name", metavar="NAME", help="keep the measures in measures.json under this name")
    parser.add_argument("--list", action="store_true", help="also list the files that are run, and the example's way")
    parser.add_argument("--observe", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.observe:
        observe()
        return
    figures, found = measures()
    print(json.dumps(figures))
    if given.list:
        print("run:", *found["files"], sep="\n  ")
        print("hops:", *(f"{file}: {function}" for file, function in found["hops"]), sep="\n  ")
        print("example:", *(f"{file}: {function}" for file, function in found["example"]), sep="\n  ")
    if given.name:
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        RECORD.write_text(json.dumps(record | {given.name: figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
