"""Do short runs of every kind still give what they gave? Digests of weights, records and splits, against digests.json.

python benchmarks/digests.py             # runs all of them on one core and compares; status 1 if any differs
python benchmarks/digests.py --record    # writes the digests down, on purpose only: then behaviour has changed

`split` depends on the seed alone: on every machine it is the same. `weights` (the averaged ones, and running
statistics) and `curve` (metrics.jsonl, less what depends on the clock, and less messages) also depend on how a machine
rounds: on another processor, or with another version of PyTorch, record them at the commit before a change and compare
with those after.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from PIL import Image

from cadr import CADRClassifier
from cadr.cli.main import main as cadr
from cadr.config import Config
from cadr.training import train

RECORD = Path(__file__).with_suffix(".json")
SHORT = ["--steps", "24", "--batch", "8", "--ratio", "2", "--evaluations", "4", "--log-every", "3", "--device", "cpu"]
DIGITS = ["digits", "--protocol", "longtail", "--n-max", "20", "--gamma", "10", "--model", "convnet", "--channels", "4"]
CTAUGMENT = ["--strong", "ctaugment"]
RUNS: dict[str, list[str]] = {
    "supervised": [*DIGITS, *SHORT, "--algorithm", "supervised"],
    "cadr": [*DIGITS, *SHORT, "--algorithm", "cadr"],
    "fixmatch-renaming": [*DIGITS, *SHORT, "--algorithm", "fixmatch", "--renaming", "--no-flip"],
    "fixmatch-ctaugment": [*DIGITS, *SHORT, "--algorithm", "fixmatch", *CTAUGMENT],
    "cap_cai": [*DIGITS, *SHORT, "--algorithm", "cap_cai", "--beta", "0.3"],
    "freematch": [*DIGITS, *SHORT, "--algorithm", "freematch"],
    "softmatch": [*DIGITS, *SHORT, "--algorithm", "softmatch"],
    "mixmatch": [*DIGITS, *SHORT, "--algorithm", "mixmatch"],
    "remixmatch-ctaugment": [*DIGITS, *SHORT, "--algorithm", "remixmatch", *CTAUGMENT],
    "crest": [*DIGITS, *SHORT, "--algorithm", "crest", "--generations", "3"],
    "darp": [*DIGITS, *SHORT, "--algorithm", "darp", "--refresh-every", "5", "--warm-up", "0.2"],
    "prg": [*DIGITS, *SHORT, "--algorithm", "prg"],
    "simpro": [*DIGITS, *SHORT, "--algorithm", "simpro"],
    "resampling": [*DIGITS, *SHORT, "--algorithm", "cadr_resampling"],
    "held-out": [*DIGITS, *SHORT, "--algorithm", "fixmatch", "--held-out", "200", "--seed", "12"],
    "wide-resnet": [*DIGITS[:-4], "--model", "wrn-28-2", "--steps", "4", *SHORT[2:], "--algorithm", "cadr"],
    "photos": ["photos", "--labels", "labels.csv", *SHORT[2:], "--steps", "30"],
    "photos-ctaugment": ["photos", "--labels", "labels.csv", *SHORT, *CTAUGMENT, "--algorithm", "freematch"],
    "table": ["table.csv", "--label-column", "species", "--steps", "60", "--device", "cpu"],
    "embeddings": ["embeddings.npz", "--steps", "60", "--algorithm", "cap_freematch_resampling", "--device", "cpu"],
}
STOPPED = ["embeddings.npz", *SHORT[2:], "--steps", "40", "--algorithm", "cadr", "--target-prior", "0.3", "0.3", "0.4"]
_AT = 20  # the step after which STOPPED is stopped
EXCHANGED = [*DIGITS, *SHORT, "--algorithm", "cadr", "--renaming"]  # two classes' names, at every look


def lay_out(folder: Path) -> None:
    """photos/ with labels.csv, table.csv with words and gaps, and embeddings.npz, a function of nothing."""
    random = np.random.default_rng(0)
    truth = np.arange(120) % 3
    left = [30, 12, 5]
    labels = np.full(len(truth), -1)
    for row, c in enumerate(truth):
        labels[row], left[c] = (c, left[c] - 1) if left[c] else (-1, 0)
    names = np.array(["robin", "wren", "owl", ""])
    x = random.normal(size=(len(truth), 6)).round(3) + 3 * np.eye(3, 6)[truth]
    np.savez(folder / "embeddings.npz", x=x.astype(np.float32), y=labels)
    words = np.array(["wood", "field", "town"])[(truth + random.integers(0, 2, len(truth))) % 3]
    gaps = np.where(random.random(len(truth)) < 0.1, "", np.char.mod("%.3f", x[:, 0]))
    rows = zip(gaps, words, x[:, 1], x[:, 2], names[labels], strict=True)
    lines = ["weight,place,wing,tail,species", *(f"{a},{b},{c:.3f},{d:.3f},{e}" for a, b, c, d, e in rows)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "photos").mkdir()
    for i, c in enumerate(truth):
        pixels = random.integers(0, 80, (12, 12, 3)) + 60 * np.eye(3, dtype=np.int64)[c]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / f"{i:03}.png")
    listed = [f"{i:03}.png,{names[c]}" for i, c in enumerate(labels) if c >= 0]
    (folder / "labels.csv").write_text("\n".join(["file,label", *listed]) + "\n", encoding="utf-8")


def run(arguments: list[str], out: Path) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = cadr(["train", *arguments, "--out", str(out)])
    if status:
        raise SystemExit(f"cadr train {' '.join(arguments)} ended with status {status}:\n{said.getvalue()}")


def run_stopped(out: Path) -> None:
    """As any other, but stopped in the middle and continued by another process's means: from the folder alone."""
    settings = dict(zip((name[2:].replace("-", "_") for name in STOPPED[1:-4:2]), STOPPED[2:-4:2], strict=True))
    numbers = {name: int(value) if value.isdecimal() else value for name, value in settings.items()}
    config = {"data": STOPPED[0], **numbers, "target_prior": [0.3, 0.3, 0.4], "model": "mlp", "views": "features"}
    records = train(Config.from_dict(config), out)
    next(record for record in records if record["step"] >= _AT)
    records.close()
    run([str(out / "config.toml")], out)


def run_exchanged(out: Path) -> None:
    """What a few steps would hardly ever find is told: so that the exchange itself is in a digest."""
    outputs = torch.tensor([1, 0, *range(2, 10)])
    with mock.patch("cadr.training.phases.class_swap.exchanged", return_value=(outputs, [(0, 1)])):
        run(EXCHANGED, out)


def digest(out: Path) -> dict[str, str]:
    """Of a finished run."""
    weights = hashlib.sha256()
    manifest = json.loads((out / "checkpoint" / "manifest.json").read_text())
    tensors: dict[str, Any] = {}
    for name in manifest["files"]:
        tensors |= torch.load(out / "checkpoint" / name, weights_only=True)
    for name in sorted(tensors):
        if name.startswith(("average.", "buffer.")):
            weights.update(name.encode() + tensors[name].numpy().tobytes())
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    curve = [{key: value for key, value in record.items() if key not in ("timing", "message")} for record in records]
    calibration = out / "calibration.json"
    said = json.dumps(curve) + (calibration.read_text() if calibration.exists() else "")
    return {"weights": weights.hexdigest(), "curve": hashlib.sha256(said.encode()).hexdigest()} | _split(out)


def _split(out: Path) -> dict[str, str]:
    if (out / "split.json").exists():
        return {"split": str(json.loads((out / "split.json").read_text())["sha256"])}
    held_out = out / "validation.json"
    if not held_out.exists():
        return {}
    rows = json.dumps(json.loads(held_out.read_text())["rows"])
    return {"split": hashlib.sha256(rows.encode()).hexdigest()}


def estimator() -> dict[str, str]:
    """What CADRClassifier predicts."""
    with np.load("embeddings.npz") as file:
        x, y = file["x"], file["y"]
    fitted = CADRClassifier("cadr", steps=60, random_state=0, validation=0.2, device="cpu").fit(x, y)
    said = repr(fitted.history_).encode() + fitted.predict_proba(x).tobytes()
    return {"curve": hashlib.sha256(said).hexdigest()}


def all_digests() -> dict[str, dict[str, str]]:
    """In a folder of their own; the working folder while it lasts."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="cadr-digests-") as folder, contextlib.chdir(folder):
        lay_out(Path())
        for name, arguments in RUNS.items():
            run(arguments, Path("runs") / name)
            found[name] = digest(Path("runs") / name)
        run_stopped(Path("runs/stopped"))
        found["stopped"] = digest(Path("runs/stopped"))
        run_exchanged(Path("runs/exchanged"))
        found["exchanged"] = digest(Path("runs/exchanged"))
        found["estimator"] = estimator()
    return found


def machine() -> dict[str, str]:
    return {"torch": torch.__version__, "processor": torch.backends.cpu.get_cpu_capability(), "on": platform.machine()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write digests.json anew")
    record = parser.parse_args().record
    torch.set_num_threads(1)
    found = all_digests()
    if record:
        RECORD.write_text(json.dumps({"machine": machine(), "runs": found}, indent=1) + "\n")
        return 0
    known = json.loads(RECORD.read_text())
    if known["machine"] != machine():
        print(f"Recorded on {known['machine']}, this is {machine()}: only splits have to be the same.")
    differing = 0
    for name in known["runs"].keys() | found.keys():
        before, after = known["runs"].get(name, {}), found.get(name, {})
        other = [part for part in before.keys() | after.keys() if before.get(part) != after.get(part)]
        differing += bool(other)
        print(f"{name}: {'differs in ' + ', '.join(sorted(other)) if other else 'the same'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
