"""The settings that nobody gave, for data that are no benchmark: from the run that is there, else by the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cadr.cli.flags import flag
from cadr.config import Config
from cadr.data import BENCHMARKS
from cadr.data.pool import Pool
from cadr.train.defaults import CHOSEN, defaults
from cadr.train.folder import RunFolder
from cadr.train.prepare import device_of, open_source


def settle(flat: dict[str, Any], out: Path) -> tuple[Config, Pool | None]:
    """The run that was asked for with `flat`, completed, and the data if they had to be opened for it."""
    config = Config.from_dict(flat)
    if not is_own(config):
        return config, None
    before = RunFolder(out).config()
    if before is not None:  # a run that is continued stays what it is, on whatever machine
        stored = before.to_dict()
        return Config.from_dict({**{name: stored[name] for name in CHOSEN if name in stored}, **flat}), None
    pool = open_source(config)
    return Config.from_dict({**_chosen(flat, config, pool), **flat}), pool


def choices_in_words(flat: dict[str, Any], config: Config, pool: Pool) -> list[str]:
    """What was chosen for somebody who did not say, as the flags that would say otherwise."""
    settled = config.to_dict()
    chosen = [f"{flag(name)} {settled[name]}" for name in CHOSEN if name not in flat]
    words = [f"Chosen by the data: {' '.join(chosen)}"] if chosen else []
    if pool.kind == "image" and "flip" not in flat:
        words.append("Half of the images are mirrored: add --no-flip where left and right matter, as in letters.")
    return words


def complete(flat: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, completed by the data; for several runs on the same data."""
    config = Config.from_dict(flat)
    return {**_chosen(flat, config, open_source(config)), **flat} if is_own(config) else flat


def is_own(config: Config) -> bool:
    """Whether the data are somebody's own, with labels missing as they are."""
    return config.data not in BENCHMARKS and config.protocol is None and config.source.split is None


def _chosen(flat: dict[str, Any], config: Config, pool: Pool) -> dict[str, Any]:
    return defaults(pool, flat, device_of(config.training.device))
