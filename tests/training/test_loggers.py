"""What is shown while a run goes on."""

import io
import re

import pytest
from rich.console import Console

from cadr.cli import terminal
from cadr.training import loggers
from cadr.training.loggers import Speed, follow
from cadr.utils.text import duration

TIMING = {"seconds": 1.0, "steps_per_second": 4.0}
RECORDS = [
    {"kind": "start", "step": 20, "steps": 100, "resumed": 20, "message": "Continuing at step 20."},
    {"kind": "train", "step": 30, "loss": 1.5, "timing": TIMING},
    {"kind": "evaluation", "step": 40, "accuracy": 81.234, "gm": 70.0, "timing": TIMING},
    {"kind": "warning", "step": 40, "message": "Nobody predicts class 3 [sic]."},
    {"kind": "renaming", "step": 50, "exchanged": [["a", "b"]], "message": "The names of a and b were exchanged."},
    {"kind": "finished", "step": 100, "message": "Finished.", "result": {"last": 1.0}},
]


def run(records):
    yield from records


def test_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(loggers, "fancy", lambda: False)
    monkeypatch.setattr(loggers, "QUIET_SECONDS", -1.0)
    monkeypatch.setattr(loggers, "EVALUATION_SECONDS", -1.0)
    assert follow(run(RECORDS), "2/4 x") == RECORDS[-1]
    assert capsys.readouterr().out.splitlines() == [
        "2/4 x: Continuing at step 20.",
        "2/4 x: step 30 of 100, 4.0 steps/s, 18 s left, loss 1.5000",
        "2/4 x: step 40 of 100, 4.0 steps/s, 15 s left, accuracy 81.23 %, GM 70.00 %",
        "2/4 x: warning: Nobody predicts class 3 [sic].",
        "2/4 x: The names of a and b were exchanged.",
        "2/4 x: Finished.",
    ]


def test_a_fast_run_does_not_flood_the_log(capsys, monkeypatch):
    monkeypatch.setattr(loggers, "fancy", lambda: False)
    last = RECORDS[2] | {"step": 100}
    follow(run([RECORDS[0], *[RECORDS[1], RECORDS[2]] * 50, last]))
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        *("Continuing at step 20.", "step 100 of 100")
    ]


def test_a_bar_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=150)
    monkeypatch.setattr("rich.progress.get_console", lambda: terminal)
    monkeypatch.setattr(loggers, "fancy", lambda: True)
    assert follow(run(RECORDS[:-1]), "digits") == RECORDS[-2]
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "Continuing at step 20." in text
    assert "Nobody predicts class 3 [sic]." in text
    assert "The names of a and b were exchanged." in text
    assert re.search(r"digits .* 40/100 accuracy 81\.23 %, GM 70\.00 % 4\.0 steps/s, 15 s left", text)


def test_without_a_test_set_there_is_no_accuracy(capsys, monkeypatch):
    monkeypatch.setattr(loggers, "fancy", lambda: False)
    follow(run([RECORDS[0], {"kind": "finished", "step": 100, "message": "Finished.", "result": {"last": None}}]))
    assert "accuracy" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (245, "4 min 05 s"), (9000, "2 h 30 min"), (None, "?")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def told(*reached):
    """What is said after the last of (seconds, step), of 1,000 steps at 1 step a second over all."""
    pace = Speed()
    for seconds, step in reached:
        pace.see({"kind": "train", "step": step, "timing": {"seconds": seconds, "steps_per_second": 1.0}})
    return pace.in_words(1000 - reached[-1][1])


def test_the_time_left_goes_by_the_pace_of_late():
    assert told((100, 100)) == "1.0 steps/s, 15 min 00 s left"  # the first record of a run that is continued
    assert told((100, 100), (110, 200)) == "10.0 steps/s, 1 min 20 s left"
    assert told((100, 100), (200, 110), (230, 410), (260, 710)) == "10.0 steps/s, 29 s left"  # it was slow before
    assert told((100, 100), (110, 200), (110, 200)) == "10.0 steps/s, 1 min 20 s left"  # an evaluation after the step
    assert told((100, 100), (1100, 200)) == "0.1 steps/s, 2 h 13 min left"  # no record for longer than that


def test_nothing_is_said_of_the_time_left_where_nothing_is_known():
    pace = Speed()
    pace.see({"kind": "start", "step": 3})
    assert pace.in_words(97) == ""


def test_a_table_without_a_terminal_is_aligned_text(capsys):
    terminal.show_table(["row", "figure"], [["a", "1.50 ± 0.1"], ["bcd", "–"]], title="t")
    assert capsys.readouterr().out == "t\nrow      figure\n---  ----------\na    1.50 ± 0.1\nbcd           –\n"
