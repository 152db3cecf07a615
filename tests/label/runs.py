"""Runs that can be labelled without training one for every test: copies, with paths of their own."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cadr.label.server import Server
from cadr.label.session import Session


def copied(run: Path, to: Path) -> Path:
    """The run in folder `run`, and the data beside it, in the folder `to`."""
    shutil.copytree(run.parent, to, dirs_exist_ok=True)
    config = to / run.name / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace(str(run.parent), str(to)), encoding="utf-8")
    return to / run.name


@contextmanager
def served(session: Session) -> Iterator[Server]:
    server = Server(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
