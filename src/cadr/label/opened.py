"""A run and its data as they are now: what has no label, and what the model takes it for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cadr.config import Config
from cadr.data import BENCHMARKS
from cadr.data.pool import MISSING, Pool, spread
from cadr.data.sources import hf_dataset
from cadr.errors import CheckpointError, ConfigError, DataError
from cadr.inference.predictor import Predictor
from cadr.label import ROWS
from cadr.label.answers import labels_file
from cadr.training.plan import open_source
from cadr.training.run_folder import RunFolder, located
from cadr.utils.files import expand_home

_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class OpenedRun:
    run: Path
    config: Config  # with paths that lead to the data from here
    pool: Pool  # with the labels that there are now, which may be more than the run was trained on
    class_names: tuple[str, ...]  # of the model
    rows: NDArray[np.int64]  # (m,) without a label
    probabilities: NDArray[np.float64]  # (m, C) calibrated
    num_unlabelled: int

    @property
    def choices(self) -> tuple[str, ...]:
        """What an example may be called: the model's classes, and those that somebody has named since."""
        return tuple(dict.fromkeys((*self.class_names, *self.pool.class_names)))


def open_run(run: Path, rows: int = ROWS, device: str = "auto") -> OpenedRun:
    """Open a run on data of somebody's own whose labels are missing as they are."""
    if rows < 1:
        raise ConfigError(f"rows must be at least 1, got {rows}")
    config, pool = data_as_now(run)
    predictor = Predictor.load(run, device=device)
    predictor.wanted().check(pool.name, pool.examples)
    without = np.flatnonzero(pool.labels == MISSING)
    if not len(without):
        raise DataError(f"{pool.name}: every example has a label; there is nothing to ask for")
    chosen = spread(without, rows)
    parts = [
        predictor.probabilities(pool.examples[chosen[start : start + _AT_ONCE]]).double().cpu().numpy()
        for start in range(0, len(chosen), _AT_ONCE)
    ]
    return OpenedRun(run, config, pool, predictor.class_names, chosen, np.concatenate(parts), len(without))


def data_as_now(run: Path) -> tuple[Config, Pool]:
    """The data of a run with all labels that there are now: answers may be in a file that the run knows nothing of."""
    folder = RunFolder.there(run)
    config = folder.config()
    if config is None:
        raise CheckpointError(f"{run} is not a run: it holds no config.toml; name the folder that train made.")
    if config.data in BENCHMARKS or config.protocol is not None or config.source.split is not None:
        raise ConfigError(f"{run} was trained on data whose labels are all known; there is nothing to ask for")
    config = located(config, folder.path)
    if config.data.startswith(hf_dataset.PREFIX) or hf_dataset.matches(expand_home(config.data)):
        raise ConfigError(
            f"{config.data} is {hf_dataset.NAME}, beside which labels cannot be written; save it as a folder of "
            "pictures, a CSV or a Parquet file, and train on that to label on"
        )
    path, source = labels_file(config), config.source
    if path is not None and path.exists():
        source = dataclasses.replace(source, labels=str(path))
    return config, open_source(dataclasses.replace(config, source=source))
