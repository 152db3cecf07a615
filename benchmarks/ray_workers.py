"""The worker processes of a Ray cluster that this process has started, by what they are doing."""

from __future__ import annotations

import os
from pathlib import Path


def working(name: str) -> list[int]:
    """Process numbers of the workers whose title begins so, as ray::MapWorker: children of our child, the raylet."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            title = (folder / "cmdline").read_bytes()
            if title.startswith(name.encode()) and _parent(_parent(int(folder.name))) == os.getpid():
                found.append(int(folder.name))
        except (OSError, ValueError):  # no process, or gone meanwhile
            continue
    return found


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
