"""Processes side by side end with the one that started them, saved and without a word."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

from cadr.cli.main import INTERRUPTED
from tests.waiting import PATIENCE, until

COMPARE = [
    *("compare", "digits", "--protocol", "mcar", "--n", "40", "--algorithms", "fixmatch", "--seeds", "2"),
    *("--model", "mlp", "--hidden", "8", "--batch", "4", "--ratio", "2", "--steps", "1000000", "--log-every", "1000"),
    *("--processes", "2", "--out", "all"),
]


def compare(folder):
    command = [sys.executable, "-m", "cadr", *COMPARE]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)


def is_free(lock):
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_runs_are_saved_when_the_parent_is_killed(tmp_path):
    process = compare(tmp_path)
    until(lambda: len(list(tmp_path.glob("all/*/metrics.jsonl"))) == 2)
    assert not list(tmp_path.glob("all/*/checkpoint"))
    process.kill()
    until(lambda: all(map(is_free, tmp_path.glob("all/*/.lock"))))
    assert len(list(tmp_path.glob("all/*/checkpoint"))) == 2
    assert "Traceback" not in process.communicate(timeout=PATIENCE)[1]


def test_ctrl_c_while_processes_start_shows_no_traceback(tmp_path):
    process = compare(tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def import_torch():
        return any("libtorch" in Path(f"/proc/{pid}/maps").read_text() for pid in children.read_text().split())

    until(import_torch)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED
    assert "Traceback" not in error
    assert "The same command continues." in error
