"""A machine that has torch, numpy and pillow, and nothing else."""

import subprocess
import sys

import numpy as np
import pytest

from cadr.training.plan import plan

PROGRAM = """
import sys
for name in ("rich", "matplotlib", "sklearn", "scipy", "pyarrow", "safetensors", "threadpoolctl", "jinja2"):
    sys.modules[name] = None  # importing it now fails
sys.stdout.isatty = lambda: True
from cadr.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
TINY = ["--steps", "4", "--batch", "4", "--ratio", "2", "--evaluations", "2", "--hidden", "8", "--model", "mlp"]
EQUAL = (
    "Classes are assumed to be equally frequent: nothing is here to estimate their shares with (pip install "
    "scikit-learn). Give --target-prior if you know better."
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    labels = np.array([0, 1] * 20)
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    np.savez(folder / "mine.npz", x=x, y=np.where(np.arange(40) < 8, labels, -1), x_test=x, y_test=labels)
    return folder


def cadr(folder, *arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_recipes_are_listed(folder):
    recipe = folder / "r.toml"
    recipe.write_text('[rows]\ncifar10-gamma50-cadr = { data = "cifar10", algorithm = "cadr" }\n')
    done = cadr(folder, "recipes", str(recipe), "--only", "cifar10-gamma50-c")
    assert done.returncode == 0, done.stderr
    assert "cifar10-gamma50-cadr" in done.stdout


def test_training_says_what_it_does_without(folder):
    done = cadr(folder, "train", "mine.npz", *TINY, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "step 4 of 4" in done.stdout
    assert done.stdout.count(EQUAL) == 1


def test_a_comparison_says_it_too(folder):
    done = cadr(folder, "compare", "mine.npz", *TINY, "--seeds", "1", "--out", "compared")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(EQUAL) == 1


@pytest.mark.parametrize("package", ["sklearn.linear_model", "threadpoolctl"])
def test_it_is_said_of_runs_that_would_have_been_told_the_shares(monkeypatch, package, folder):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(folder)

    def said(**flat):
        return plan({"data": "mine.npz", **flat}, out=folder / "new").sentences()

    assert EQUAL in said(algorithm="cadr")
    assert EQUAL not in said(algorithm="fixmatch")
    assert EQUAL not in said(algorithm="cadr", target_prior=[0.3, 0.7])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["diagnose", "mine.npz"], "a diagnosis needs the package scikit-learn: pip install scikit-learn"),
        (["train", "digits", *TINY], "the data set digits needs the package scikit-learn: pip install scikit-learn"),
    ],
)
def test_commands_that_need_more_say_what_to_install(folder, arguments, sentence):
    done = cadr(folder, *arguments)
    assert (done.returncode, done.stderr) == (2, f"cadr: {sentence}\n")
