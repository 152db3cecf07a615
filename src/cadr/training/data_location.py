"""The data of a run, found from wherever it is asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from cadr.config import Config
from cadr.data import BENCHMARKS
from cadr.utils.files import expand_home


def located(config: Config, run: Path) -> Config:
    """With paths that lead nowhere from here led from where the run was begun, most often a folder above it.

    The nearest one from which they lead to something is taken; whether that is what the run saw is checked elsewhere.
    """
    config = with_model_located(config, run)
    source = dataclasses.replace(
        config.source, labels=_found(config.source.labels, run), root=_found(config.source.root, run)
    )
    data = config.data if config.data in BENCHMARKS else str(_found(config.data, run))
    return dataclasses.replace(config, data=data, source=source)


def with_model_located(config: Config, run: Path) -> Config:
    """The same of the pretrained model alone, which predictions need, too."""
    return dataclasses.replace(
        config, source=dataclasses.replace(config.source, features=_found(config.source.features, run))
    )


def _found(path: str | None, run: Path) -> str | None:
    if path is None or expand_home(path).is_absolute() or Path(path).exists():
        return path
    return next((str(above / path) for above in run.resolve().parents if (above / path).exists()), path)
