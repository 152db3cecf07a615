"""The settings that nobody gave, for data that are no benchmark: from the run that is there, else by the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cadr.algorithms import Algorithm, Supervised
from cadr.cli.flags import flag
from cadr.config import CHOICES, Config
from cadr.data.description import columns_in_words
from cadr.data.pool import MISSING, Pool
from cadr.diagnosis.result import Diagnosis
from cadr.errors import DataError
from cadr.inference.evaluation import is_own
from cadr.training import defaults as by_size
from cadr.training.prepare import device_of, open_source
from cadr.training.run_folder import RunFolder
from cadr.training.target import Target, diagnosed_target, takes_target

CHOSEN = (*by_size.CHOSEN, "target_prior")
_ONCE_CHOSEN = ("evaluations",)  # of runs that are there, for which it was


class Settled(NamedTuple):
    """The run that was asked for, completed; what had to be opened and diagnosed for it, and what to say."""

    config: Config
    pool: Pool | None = None
    words: Sequence[str] = ()
    diagnosis: Diagnosis | None = None


def settle(flat: dict[str, Any], out: Path) -> Settled:
    """The run that was asked for with `flat`."""
    config = Config.from_dict(flat)
    if not is_own(config):
        return Settled(config)
    before = RunFolder(out).config()
    if before is not None:  # a run that is continued stays what it is, on whatever machine
        stored = before.to_dict()
        kept = {name: stored[name] for name in (*CHOSEN, *_ONCE_CHOSEN) if name in stored}
        return Settled(Config.from_dict({**kept, **flat}))
    pool = open_source(config)
    _check_missing(config, pool, type(config.algorithm))
    told = "target_prior" in flat or not takes_target(type(config.algorithm))
    target = None if told else diagnosed_target(pool)
    chosen = by_size.defaults(pool, flat, device_of(config.training.device)) | _given(target)
    settled = Config.from_dict({**chosen, **flat})
    words = _choices_in_words(flat, settled, pool, target)
    return Settled(settled, pool, words, None if target is None else target.diagnosis)


def _choices_in_words(flat: dict[str, Any], config: Config, pool: Pool, target: Target | None) -> list[str]:
    """What was chosen for somebody who did not say, as flags that would say otherwise; what a table was taken for."""
    settled = config.to_dict()
    chosen = [f"{flag(name)} {_words(settled[name])}" for name in CHOSEN if name not in flat and settled.get(name)]
    words = [f"Chosen by the data: {' '.join(chosen)}"] if chosen else []
    words += target_in_words(target)
    if pool.kind == "image" and "flip" not in flat:
        words.append("Half of the images are mirrored: add --no-flip where left and right matter, as in letters.")
    return [*words, *columns_in_words(pool)]


def target_in_words(target: Target | None) -> list[str]:
    """What is presumed of the classes' shares, which decides a run; nothing if somebody has said what they are."""
    if target is None:
        return []
    warned = [f"Warning: {target.warning} See cadr diagnose."] if target.warning else []
    if target.shares is not None:
        return [f"The target is the classes' shares {target.why}; say so if you know better.", *warned]
    presumed = f"The classes are taken to be equally frequent: {target.why}."
    return [f"{presumed} Give --target-prior if you know better.", *warned]


def complete(
    flat: dict[str, Any], algorithms: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], list[str]]:
    """What was asked for, completed by the data, for several methods; what only some of them take, and what to say.

    `algorithms` are by name, with the settings that somebody gave them.
    """
    config = Config.from_dict({**flat, "algorithm": next(iter(algorithms))})
    if not is_own(config):
        return flat, {}, []
    pool = open_source(config)
    _check_missing(config, pool, *(CHOICES["algorithm"][name] for name in algorithms))
    told = [name for name, settings in algorithms.items() if "target_prior" in settings]
    taking = [name for name in algorithms if takes_target(CHOICES["algorithm"][name]) and name not in told]
    target = diagnosed_target(pool) if taking else None
    size = by_size.defaults(pool, flat, device_of(config.training.device))
    return {**size, **flat}, dict.fromkeys(taking, _given(target)), target_in_words(target)


def _check_missing(config: Config, pool: Pool, *algorithms: type[Algorithm]) -> None:
    """Whole data are most likely a mistake: a protocol forgotten, or a file of truths taken for the file of labels."""
    thinned = config.protocol is not None or config.source.split is not None
    if thinned or (pool.labels == MISSING).any() or set(algorithms) == {Supervised}:
        return
    raise DataError(
        f"{pool.name}: no label is missing, so there is nothing to learn from but the labels; leave some out with "
        "--protocol, or train on them alone with --algorithm supervised."
    )


def _given(target: Target | None) -> dict[str, Any]:
    return {} if target is None or target.shares is None else {"target_prior": target.shares}


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
