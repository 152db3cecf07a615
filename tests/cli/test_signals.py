"""Every command can be asked to stop: status 130, and no half files."""

import signal
import subprocess
import sys
import threading

import pytest

from cadr.cli import recipes
from cadr.cli.main import INTERRUPTED, main

PROGRAM = """
import signal, sys
from pathlib import Path
from cadr.cli import recipes
from cadr.cli.main import main
from cadr.utils.files import atomic_write

def run(namespace):
    with atomic_write(Path("all.csv")) as new:
        new.write_text("half")
        signal.raise_signal(int(sys.argv[1]))

recipes.run = run
# As a terminal leaves them: the tests themselves may be run under nohup, or in the background of a script.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[2] == "nohup" else signal.SIG_DFL)
sys.exit(main(["recipes"]))
"""


def stopped(folder, number, how=""):
    command = [sys.executable, "-c", PROGRAM, str(int(number)), how]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_half_file_is_left(tmp_path, number):
    done = stopped(tmp_path, number)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "cadr: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_under_nohup_a_closed_terminal_is_not_minded(tmp_path):
    assert stopped(tmp_path, signal.SIGHUP, "nohup").returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["all.csv"]


@pytest.fixture
def unhandled():
    """Signals as a process finds them at first; another test's program may have left handlers."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("unhandled")
def test_afterwards_signals_do_what_they_did(monkeypatch):
    seen = []
    monkeypatch.setattr(recipes, "run", lambda namespace: seen.append(signal.getsignal(signal.SIGTERM)))
    assert main(["recipes"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == [signal.SIG_DFL] * 2
    assert seen == [signal.default_int_handler]


@pytest.mark.usefixtures("unhandled")
def test_another_thread_leaves_signals_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(recipes, "run", lambda namespace: seen.append(signal.getsignal(signal.SIGTERM)))
    thread = threading.Thread(target=main, args=(["recipes"],))
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
