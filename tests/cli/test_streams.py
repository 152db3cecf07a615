"""Standard output that is closed, or whose encoding lacks what is printed, costs no command its status."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from cadr.cli.main import INTERRUPTED

TRAIN = ["train", "mine.npz", "--steps", "2", "--batch", "4", "--ratio", "2", "--evaluations", "1", "--validation", "0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data with a class that ASCII cannot write, and a file whose name is no text in any encoding."""
    folder = tmp_path_factory.mktemp("streams")
    rows = "".join(f"{i * i % 7},{('é', 'a', '')[i % 3]}\n" for i in range(20))
    (folder / "mine.csv").write_text(f"x,label\n{rows}")
    (folder / "odd\udcff.toml").write_text('[rows]\nfirst = { data = "digits", algorithm = "cadr" }\n')
    x = np.arange(40, dtype=np.float32).reshape(20, 2)
    np.savez(folder / "mine.npz", x=x, y=np.array([0, 1] * 9 + [-1, -1]))
    return folder


def cadr(folder, arguments, shell="", **environment):
    command = ["bash", "-o", "pipefail", "-c", f'"$@" {shell}', "-", sys.executable, "-m", "cadr", *arguments]
    settings = ("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONUNBUFFERED")
    inherited = {k: v for k, v in os.environ.items() if k not in settings}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=inherited | environment)


def test_signs_that_the_encoding_lacks_are_escaped(folder):
    shown = cadr(folder, ["data", "show", "mine.csv"], PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\xe9" in shown.stdout
    helped = cadr(folder, ["train", "--help"], LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "\\u03c4_o" in helped.stdout  # the threshold's symbol, τ


def test_json_stays_json_in_any_encoding(folder):
    said = cadr(folder, ["diagnose", "mine.csv", "--json"], PYTHONIOENCODING="ascii")
    assert (said.returncode, said.stderr) == (0, "")
    assert [found["name"] for found in json.loads(said.stdout)["classes"]] == ["a", "é"]


def test_a_file_name_that_is_no_text_is_escaped(folder):
    shown = cadr(folder, ["recipes", "odd\udcff.toml"], PYTHONIOENCODING="utf-8:strict")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "odd\\udcff" in shown.stdout


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_not_missed(folder, closed):
    out = f"run{len(closed)}"
    done = cadr(folder, [*TRAIN, "--out", out], closed)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / out / "result.json").exists()


def test_an_error_is_said_though_nobody_reads_what_was_printed_before(folder):
    (folder / "good.toml").write_text('[rows]\nfirst = { data = "digits", algorithm = "cadr" }\n')
    done = cadr(folder, ["recipes", "good.toml", "missing.toml"], "| true")
    assert (done.returncode, done.stderr) == (2, "cadr: there is no recipe missing.toml\n")


@pytest.mark.parametrize("command", ["train", "compare"])
def test_training_that_nobody_reads_any_more_stops_and_says_so(folder, command):
    flags = [*TRAIN[2:], "--log-every", "1", "--out", f"unread-{command}"]
    flags[flags.index("--steps") + 1] = "1000000"
    done = cadr(folder, [command, *TRAIN[1:2], *flags], "| head -n 1")
    assert done.returncode == INTERRUPTED
    assert done.stdout.count("\n") == 1
    assert done.stderr.startswith("cadr: stopped, as nobody reads the output any more; the same command continues")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("until", "saved"), [("Chosen", False), ("Training", True)])
def test_what_was_trained_until_then_is_saved(folder, until, saved):
    """Nothing, if nobody reads the lines that come before the first step."""
    flags = [*TRAIN[2:], "--out", f"unread-{until}"]
    flags[flags.index("--steps") + 1] = "1000000"
    done = cadr(folder, [*TRAIN[:2], *flags], f"| sed /^{until}/q")
    assert done.returncode == INTERRUPTED
    assert (folder / f"unread-{until}" / "checkpoint").is_dir() == saved


def test_so_does_the_demonstration(folder):
    done = cadr(folder, ["demo", "--seeds", "1", "--steps", "4"], "| head -n 1")
    assert done.returncode == INTERRUPTED
    assert "\ncadr: stopped, as nobody reads the output any more" in f"\n{done.stderr}"


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["data", "show", "mine.csv"]])
def test_what_is_only_printed_need_not_be_read(folder, arguments):
    done = cadr(folder, arguments, "| true")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_has_its_status_also_when_nobody_reads_of_it(folder):
    assert cadr(folder, ["data", "show", "nothing"], "2>&1 | true").returncode == 2


def test_what_is_started_with_a_closed_stream_has_it_too(folder):
    program = "from cadr.cli.terminal import make_writable; make_writable(); import os; os.system('echo unread')"
    command = ["bash", "-c", 'exec "$@" >&-', "-", sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
