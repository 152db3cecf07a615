"""Being asked to stop: whoever asks, it is like Ctrl-C, so that what can be saved is, and no half files are left."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping_politely() -> Iterator[None]:
    """While this lasts, a scheduler's time limit (SIGTERM) and a closed terminal (SIGHUP) raise KeyboardInterrupt.

    Only where they would kill: who started us with nohup wants them ignored, and a program around us may have handlers
    of its own.
    """
    wanted = {signal.SIGTERM: signal.default_int_handler, signal.SIGHUP: _terminate}
    killing = [number for number in wanted if signal.getsignal(number) == signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        killing = []  # other threads may not say what signals do
    for number in killing:
        signal.signal(number, wanted[number])
    try:
        yield
    finally:
        for number in killing:
            signal.signal(number, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    """One signal for both: training knows when SIGTERM may interrupt it."""
    signal.raise_signal(signal.SIGTERM)
