"""The guide's method is a real one: its diff applies to this tree, is short, and passes its own tests and ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cadr.algorithms.base import Algorithm

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
