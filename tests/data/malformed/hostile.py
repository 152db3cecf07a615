"""Pickles that leave a canary behind when they are loaded."""

import os
from pathlib import Path


class Hostile:
    """Unpickling this would leave a file behind."""

    def __init__(self, folder: Path) -> None:
        self.command = f"touch {folder / 'canary'}"

    def __reduce__(self):
        return os.system, (self.command,)


class HostileEval(Hostile):
    def __reduce__(self):
        return eval, (f"__import__('os').system({self.command!r})",)
