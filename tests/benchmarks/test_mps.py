"""The service that lets runs share a GPU, played by a script that writes down what it was asked."""

import os
import stat
from pathlib import Path

import pytest

from benchmarks import mps

PIPE = "CUDA_MPS_PIPE_DIRECTORY"


@pytest.fixture
def control(tmp_path, monkeypatch):
    """A control program that notes its arguments, its standard input and the folder it was given."""

    def install(status=0):
        notes = tmp_path / "notes"
        program = tmp_path / "bin" / mps.CONTROL
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\nread line\necho "[$*][$line][$(ls -d ${PIPE})]" >> {notes}\necho broken >&2\nexit {status}\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.delenv(PIPE, raising=False)
        return notes

    return install


def test_the_service_starts_and_ends_in_a_folder_of_its_own(control):
    notes = control()
    with mps.shared_gpu(2) as environment:
        folder = environment[PIPE]
        assert notes.read_text() == f"[-d][][{folder}]\n"
    assert notes.read_text().splitlines()[1:] == [f"[][quit][{folder}]"]
    assert not Path(folder).exists()


def test_runs_take_turns_where_it_does_not_start(control, capsys):
    notes = control(status=1)
    with mps.shared_gpu(2) as environment:
        assert environment == {}
    assert notes.read_text().count("\n") == 1
    assert "broken" in capsys.readouterr().err


def test_a_service_in_use_is_left_alone(control, monkeypatch, tmp_path):
    notes = control()
    monkeypatch.setenv(PIPE, str(tmp_path))
    with mps.shared_gpu(2) as environment:
        assert environment == {}
    assert not notes.exists()


def test_there_need_be_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with mps.shared_gpu(2) as environment:
        assert environment == {}


def test_one_run_alone_needs_none(control):
    notes = control()
    with mps.shared_gpu(1) as environment:
        assert environment == {}
    assert not notes.exists()
