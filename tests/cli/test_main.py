"""The command itself: help, version, and errors of one sentence."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from cadr.cli.main import COMMANDS, INTERRUPTED, main
from cadr.errors import DataError


def failing(error):
    def run(namespace):
        raise error

    class Module:
        @staticmethod
        def add(subparsers):
            subparsers.add_parser("train").set_defaults(run=run)

    return Module


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(f"\n    {name} " in text for name in COMMANDS)


def test_no_command_shows_help_and_fails(capsys):
    assert main([]) == 2
    assert "usage: cadr" in capsys.readouterr().out


def test_python_m_cadr_says_its_version():
    done = subprocess.run([sys.executable, "-m", "cadr", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cadr ")


@pytest.mark.parametrize("arguments", [["trian", "digits"], ["recipes", "--steps", "3"], ["--flag"]])
def test_a_mistyped_command_costs_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("cadr")
    assert error.count("\n") == 1
    assert "--help" in error


def test_a_mistyped_flag_names_the_help_that_lists_it(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", "digits", "--lables", "x"])
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err
        == "cadr train: unrecognized arguments: --lables x (did you mean --labels?); see cadr train --help\n"
    )


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (DataError("photos/ holds no images;\nname another folder"), 2, "photos/ holds no images; name another folder"),
        (
            FileNotFoundError(2, "No such file or directory", "x.csv"),
            2,
            "x.csv cannot be used: No such file or directory",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
    ],
)
def test_errors_of_the_input_are_one_sentence(error, status, sentence, monkeypatch, capsys):
    monkeypatch.setattr("importlib.import_module", lambda name: failing(error))
    assert main(["train"]) == status
    assert capsys.readouterr().err == f"cadr: {sentence}\n"


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: failing(DataError("no")))
    with pytest.raises(DataError):
        main(["train", "--debug"])


def test_a_defect_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["train"])


def test_a_reader_that_leaves_is_no_error(tmp_path):
    rows = "\n".join(f'row-{i} = {{ data = "digits", algorithm = "cadr" }}' for i in range(5000))
    (tmp_path / "many.toml").write_text(f"[rows]\n{rows}\n")
    shell = f"{sys.executable} -m cadr recipes many.toml | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("many.toml")


def test_too_little_memory_costs_a_sentence(monkeypatch, capsys, tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.eye(4, dtype=np.float32), y=np.array([0, 1, 0, -1]))
    rows = ["--batch", str(2**20), "--ratio", "1", "--steps", str(2**24), "--evaluations", "1"]  # a table of 64 TiB
    assert main(["train", str(tmp_path / "mine.npz"), *rows, "--out", str(tmp_path / "run")]) == 2
    on_a_cpu = capsys.readouterr().err
    monkeypatch.setattr("importlib.import_module", lambda name: failing(torch.OutOfMemoryError("CUDA out of memory")))
    assert main(["train"]) == 2
    assert capsys.readouterr().err == on_a_cpu
    assert on_a_cpu.startswith("cadr: there is not enough memory for this; ")


def test_another_error_of_torch_is_a_defect(monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: failing(RuntimeError("shapes do not match")))
    with pytest.raises(RuntimeError, match="shapes"):
        main(["train"])
