"""What a run was trained on is not written over, as somebody may have given its labels by hand; nor is the run."""

from __future__ import annotations

from pathlib import Path

from cadr.config import Config
from cadr.data import validation
from cadr.data.sources.folder import LABELS
from cadr.errors import ConfigError
from cadr.training import checkpoint, signature
from cadr.training.run_folder import CALIBRATION, RESULT, located
from cadr.utils.files import expand_home, real_path

_OF_A_RUN = (
    ".lock",
    "config.toml",
    "split.json",
    "metrics.jsonl",
    validation.FILE,
    signature.FILE,
    CALIBRATION,
    RESULT,
)
_CHECKPOINTS = (checkpoint.CURRENT, checkpoint.PREVIOUS)


def check_not_overwritten(config: Config, run: Path, *written: Path) -> None:
    """Refuse to write to the data or the labels of the run in folder `run`, or to its own files."""
    config = located(config, run)
    data = expand_home(config.data)
    given = [data, data / LABELS, expand_home(config.source.labels or config.data)]
    own = {real_path(run / name) for name in _OF_A_RUN}
    folders = {real_path(run / name) for name in _CHECKPOINTS}
    for path in written:
        if path.exists() and any(file.exists() and path.samefile(file) for file in given):
            raise ConfigError(f"{path} is what the run was trained on; write to another file")
        if real_path(path) in own or real_path(path).parent in folders:
            raise ConfigError(f"{path} belongs to the run; write to another file")
