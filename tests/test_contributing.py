"""The guide's method is a real one: its diff applies to this tree, is short, and passes its own tests and ours."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from torch import nn

from cadr.algorithms.base import Algorithm
from cadr.cli.main import main
from cadr.config import CHOICES
from cadr.optim import OPTIMISERS, SGD
from cadr.training.tracking import TRACKERS
from cadr.training.tracking.base import Tracker
from cadr.utils.options import option
from tests.training import tiny

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def diff() -> str:
    (block,) = re.findall(r"```diff\n(.*?)```", TEXT, flags=re.DOTALL)
    return str(block)


def test_adding_a_method_takes_less_than_a_hundred_lines():
    assert len(diff().splitlines()) < 100
    assert len(re.findall(r"^diff --git", diff(), flags=re.MULTILINE)) == 3


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diff")
def test_the_diff_applies_and_passes(tmp_path):
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(tmp_path / "src")
    applied = subprocess.run(
        ["git", "apply", "-C1", "-"], input=diff(), cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert applied.returncode == 0, applied.stderr
    files = ["test_pseudo_label.py", "test_capture.py", "test_reductions.py", "test_options.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "pseudo_label"]
    command += [f"tests/algorithms/{name}" for name in files]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_names_what_an_algorithm_may_declare():
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", TEXT, flags=re.MULTILINE))))
    declared = {name for name in vars(Algorithm) if not name.startswith("_")} - {"init", "loss"}
    assert declared <= named
    assert named - declared == {"refresh_every", "refresh"}  # of Refreshing


def test_what_else_can_be_added_is_where_the_guide_says():
    _, table = TEXT.split("## Adding something else")
    for path in re.findall(r"`(src/[\w/.]+)`", table):
        assert (ROOT / path).exists(), path
    for name, path in re.findall(r"`([A-Z]\w+)` in `(src/[\w/.]+)`", table):
        assert re.search(rf"^(class )?{name}\b", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE), name


class Sign(SGD):
    """An optimiser: the sign of the gradient."""

    def begin(self, flat, weights, gradient, velocity):
        def update(factor):
            weights.addcmul_(gradient.sign(), (self.lr * factor).to(weights.dtype), value=-1.0)

        return update


@dataclass(frozen=True)
class Linear:
    """A network."""

    bias: bool = option(True, "whether the layer has one")

    def build(self, num_classes, input_shape):
        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), num_classes, bias=self.bias))


class Lines(Tracker):
    module, name, extra = "json", "Lines", ""

    def __init__(self, folder, begun, points):
        self.file = (folder.path / "lines.txt").open("w")
        self.send(points)

    def send(self, points):
        self.file.writelines(f"{point.step}\n" for point in points)

    def close(self, finished):
        self.file.close()


def test_an_optimiser_a_network_and_a_tracker_are_a_class_and_an_entry(monkeypatch, tmp_path):
    monkeypatch.setitem(OPTIMISERS, "sign", Sign)
    monkeypatch.setitem(CHOICES["model"], "linear", Linear)  # which has all of MODELS
    monkeypatch.setitem(TRACKERS, "lines", Lines)
    data = ["train", "digits", "--protocol", "mcar", "--n", "50", "--algorithm", "fixmatch", "--device", "cpu"]
    data += ["--steps", "6", "--batch", "8", "--ratio", "1", "--evaluations", "2", "--log-every", "3"]
    flags = ["--model", "linear", "--no-bias", "--optimiser", "sign", "--lr", "0.01", "--log", "lines"]
    assert main([*data, *flags, "--out", str(tmp_path / "run")]) == 0
    assert set((tmp_path / "run" / "lines.txt").read_text().split()) == {"3", "6"}
    kept = tiny.tensors(tmp_path / "run")
    assert [name for name in kept if name.startswith("weight.")] == ["weight.1.weight"]
    assert main(["evaluate", str(tmp_path / "run")]) == 0
