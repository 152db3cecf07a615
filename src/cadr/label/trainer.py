"""Training in a process of its own, while the page waits and says how it goes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cadr.errors import CadrError

_PROGRAM = [sys.executable, "-m", "cadr"]


class Trainer:
    """One at a time; `then` is called with the folder of a run that was trained."""

    def __init__(self, then: Callable[[Path], None]) -> None:
        self.then = then
        self.running = False
        self.line = self.problem = ""
        self._thread: threading.Thread | None = None

    def start(self, arguments: Sequence[str], out: Path) -> None:
        self.running, self.line, self.problem = True, "Training begins.", ""
        self._thread = threading.Thread(target=self._run, args=(list(arguments), out), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def state(self) -> dict[str, Any]:
        return {"running": self.running, "line": self.line, "problem": self.problem}

    def _run(self, arguments: list[str], out: Path) -> None:
        try:
            # its own words go to the terminal, too, where somebody may look
            process = subprocess.Popen(
                [*_PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
            )
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                self.line = line.strip() or self.line
            if process.wait():
                self.problem = f"Training did not end well: {self.line}"
            else:
                self.then(out)
        except (CadrError, OSError) as error:
            self.problem = str(error)
        finally:
            self.running = False
