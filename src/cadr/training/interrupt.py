"""Ctrl-C between two steps, never within one: the state is then whole and can be saved."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Deferred:
    """While this lasts, a signal that would raise KeyboardInterrupt only sets `requested`; a second one raises."""

    def __init__(self) -> None:
        self.requested = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Deferred:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is signal.default_int_handler:
                    self._handlers[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
