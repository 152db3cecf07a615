"""What a run was trained on is not written over: somebody may have given its labels by hand."""

from __future__ import annotations

from pathlib import Path

from cadr.config import Config
from cadr.data.home import at_home
from cadr.data.sources.folder import LABELS
from cadr.errors import ConfigError
from cadr.train.whereabouts import located


def check_spared(config: Config, run: Path, *written: Path) -> None:
    """Refuse to write to the data or the labels of the run in folder `run`, from wherever it is asked for."""
    config = located(config, run)
    data = at_home(config.data)
    given = [data, data / LABELS, at_home(config.source.labels or config.data)]
    for path in written:
        if path.exists() and any(file.exists() and path.samefile(file) for file in given):
            raise ConfigError(f"{path} is what the run was trained on; write to another file")
