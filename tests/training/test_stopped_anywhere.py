"""Ctrl-C pressed at every single line of the loop and of whoever listens to it: the run is saved each time."""

from __future__ import annotations

import itertools
import signal
import sys
from types import FrameType

from cadr.training import checkpoint, train
from cadr.training.loggers import follow
from cadr.training.run_folder import read_records
from tests.training import tiny

FUNCTIONS = {"follow", "show", "records", "_go_on_to", "_undivided", "_advance", "append", "__enter__", "__exit__"}


class Pressed:
    """Presses Ctrl-C at the n-th line that our functions of these names execute, as Python's own tracing counts."""

    def __init__(self, n: int) -> None:
        self.left, self.where = n, ""

    def __call__(self, frame: FrameType, event: str, argument: object) -> Pressed | None:
        code = frame.f_code
        if self.where or code.co_name not in FUNCTIONS or "cadr" not in frame.f_globals["__name__"]:
            return None
        self.left -= event == "line"
        if not self.left:
            self.where = f"{code.co_name}, line {frame.f_lineno}"
            signal.raise_signal(signal.SIGINT)
        return self


def test_a_run_is_saved_at_whichever_line_it_is_stopped(tmp_path):
    settings = tiny.config(steps=4, log_every=2, evaluations=1, checkpoint_seconds=1e9)
    places, saved = set(), set()
    for n in itertools.count(1):
        out, pressed, tracer = tmp_path / str(n), Pressed(n), sys.gettrace()
        sys.settrace(pressed)
        try:
            follow(train(settings, out, pool=tiny.pool()))
            sys.settrace(tracer)
        except KeyboardInterrupt:  # looked at here, where the traceback still holds on to the run
            sys.settrace(tracer)
            records = list(read_records(out / "metrics.jsonl"))
            if records:
                assert (out / checkpoint.CURRENT).is_dir(), pressed.where
                step = int(tiny.tensors(out)["step"])
                assert step >= records[-1]["step"], pressed.where
                saved.add(step)
        if not pressed.where:
            break
        places.add(pressed.where.split(",")[0])
    assert places == FUNCTIONS
    assert saved == {2, 3, 4}  # 3: stopped in the middle of the third step, saved at its end
