"""The settings that nobody gave, for data that are no benchmark: from the run that is there, else by the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cadr.cli.flags import flag
from cadr.config import CHOICES, Config
from cadr.data import BENCHMARKS
from cadr.data.description import columns_in_words
from cadr.data.pool import Pool
from cadr.evaluate.diagnosis import PACKAGES
from cadr.evaluate.target import diagnosed_target, takes_target
from cadr.needed import is_here
from cadr.train import defaults as by_size
from cadr.train.folder import RunFolder
from cadr.train.prepare import device_of, open_source

CHOSEN = (*by_size.CHOSEN, "target_prior")


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
    """What was chosen for somebody who did not say, as flags that would say otherwise; what a table was taken for."""
    settled = config.to_dict()
    chosen = [f"{flag(name)} {_words(settled[name])}" for name in CHOSEN if name not in flat and settled.get(name)]
    words = [f"Chosen by the data: {' '.join(chosen)}"] if chosen else []
    if "target_prior" not in flat and settled.get("target_prior"):
        words.append("The target is the classes' shares as cadr diagnose estimates them; say so if you know better.")
    words += undiagnosed([config])
    if pool.kind == "image" and "flip" not in flat:
        words.append("Half of the images are mirrored: add --no-flip where left and right matter, as in letters.")
    return [*words, *columns_in_words(pool)]


def undiagnosed(configs: Sequence[Config]) -> list[str]:
    """A line where the same command trains otherwise on another machine: with shares that cannot be diagnosed here."""
    untold = [c for c in configs if takes_target(type(c.algorithm)) and not c.algorithm.target_prior and is_own(c)]
    if not untold or all(map(is_here, PACKAGES)):
        return []
    return ["The classes are taken to be equally frequent; to have their shares diagnosed, pip install scikit-learn."]


def complete(flat: dict[str, Any], algorithms: Sequence[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What was asked for, completed by the data, for several methods; and what only some of them take, by name."""
    config = Config.from_dict({**flat, "algorithm": algorithms[0]})
    if not is_own(config):
        return flat, {}
    pool = open_source(config)
    taking = [name for name in algorithms if takes_target(CHOICES["algorithm"][name])]
    target = _target(diagnosed_target(pool) if taking else None)
    size = by_size.defaults(pool, flat, device_of(config.training.device))
    return {**size, **flat}, dict.fromkeys(taking, target)


def is_own(config: Config) -> bool:
    """Whether the data are somebody's own, with labels missing as they are or as a protocol decides."""
    return config.data not in BENCHMARKS


def _chosen(flat: dict[str, Any], config: Config, pool: Pool) -> dict[str, Any]:
    chosen = by_size.defaults(pool, flat, device_of(config.training.device))
    told = "target_prior" in flat or not takes_target(type(config.algorithm))
    return chosen | _target(None if told else diagnosed_target(pool))


def _target(shares: list[float] | None) -> dict[str, Any]:
    return {} if shares is None else {"target_prior": shares}


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
