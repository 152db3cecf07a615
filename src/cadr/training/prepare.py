"""From a configuration to a run that can start: data, split, model and views, checked against what the folder holds."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cadr.config import Config, difference, name_of, title_of
from cadr.data import BENCHMARKS, validation
from cadr.data.pool import Pool
from cadr.data.sources.registry import is_there
from cadr.data.split import Split, apply, make_split
from cadr.data.validation import Indices
from cadr.ensemble.module import unfitted
from cadr.errors import ConfigError, DataError
from cadr.training.auxiliary_head import widen
from cadr.training.plan import complete, device_of, input_shape, open_source
from cadr.training.run_folder import RunFolder, located
from cadr.training.user_model import check_user_model, not_given
from cadr.training.warm_start import begin_with, check_continues, held_out
from cadr.utils import ranks

VALIDATION = "validation"  # labels held out
CROSS_FITTED = "cross_fitted"  # all labels, each judged by a fit to others


@dataclass(frozen=True, eq=False)
class Prepared:
    config: Config  # complete: model and views are chosen
    pool: Pool  # as the learner may see it
    split: Split | None
    model: nn.Module
    model_name: str
    device: torch.device
    validation: Indices | None  # rows held out from the labels where there is no test set

    @property
    def judged_on(self) -> str:
        """What is evaluated on: test, held_out (of a benchmark), validation or cross_fitted (one's own labels)."""
        if self.validation is not None:
            return VALIDATION
        if self.config.is_instant and self.pool.test_examples is None:
            return CROSS_FITTED
        return "held_out" if self.split is not None and self.split.held_out else "test"


def prepare(config: Config, folder: RunFolder, pool: Pool | None, model: nn.Module | None) -> Prepared:
    """Open what the configuration names, and compare it with the config.toml that is there, if any."""
    check_unchanged(folder, config)
    before = config.training.continue_from
    continues = before is not None and folder.config() is None
    if before is not None and continues:
        check_continues(before, config.is_instant)
    prepared = _open(config, folder, pool, model, config.training.device, continues)
    check_unchanged(folder, prepared.config)
    return prepared


def write(prepared: Prepared, folder: RunFolder) -> None:
    """Say what the run is. Not before it can begin: a mistake would have to be repeated to use the folder again."""
    if ranks.number():
        return
    folder.write("config.toml", prepared.config.to_toml())
    if prepared.split is not None:
        prepared.split.write(folder.path / "split.json")
    if prepared.validation is not None:
        folder.write(validation.FILE, validation.to_json(prepared.validation, prepared.pool))


def restore(folder: RunFolder, pool: Pool | None, model: nn.Module | None, device: str) -> Prepared:
    """What the run in a folder was made of; changes nothing there."""
    config = folder.config()
    if config is None:
        raise ConfigError(f"{folder.path} is not a run: it holds no config.toml.")
    if config.model is None and model is None and not config.is_instant:
        raise not_given(folder.path)
    config = located(config, folder.path)
    if pool is None and config.data not in BENCHMARKS and not is_there(config.data):
        raise DataError(
            f"{config.data} is neither a file or folder nor a benchmark; put it back where it was, or, if "
            f"{folder.path} was trained from Python on a pool, give that again there: evaluate_run and write_report "
            "take pool=…."
        )
    return _open(config, folder, pool, model, device)


def _open(
    config: Config,
    folder: RunFolder,
    pool: Pool | None,
    model: nn.Module | None,
    device: str,
    continues: bool = False,  # begins with the weights of another run
) -> Prepared:
    if pool is None:
        pool = open_source(config)
    split = _split(config, folder.path / "split.json", pool)
    if split is not None:
        pool = apply(pool, split)
    if config.is_instant:
        config, name = complete(config, pool, model), name_of(config.algorithm)
        return Prepared(config, pool, split, unfitted(), name, device_of(device), None)
    rows = _validation(config, folder.path / validation.FILE, pool)
    if rows is not None:
        pool = validation.hold_out(pool, rows)
    config = complete(config, pool, model)
    if model is not None:
        shape, precision = input_shape(pool), config.training.precision
        check_user_model(model, pool.num_classes, shape, device_of(device), precision)
    built = model if model is not None else build_model(config, pool.num_classes, input_shape(pool))
    if continues:
        begin_with(built, config, pool)
    widen(built, pool.num_classes, config.algorithm.auxiliary, config.training.seed)
    name = type(model).__name__ if model is not None else title_of(config.model)
    return Prepared(config, pool, split, built, name, device_of(device), rows)


def check_unchanged(folder: RunFolder, config: Config) -> None:
    """A run continues as what it was begun as, or not at all."""
    before = folder.config()
    if before is None:
        return
    # What was left open is what was chosen then.
    blank = {part: getattr(before, part) for part in ("model", "views") if getattr(config, part) is None}
    changed = difference(before, dataclasses.replace(config, **blank))
    if changed:
        raise ConfigError(
            f"{folder.path} holds a run with another configuration: {'; '.join(changed)}. Use another folder, or the "
            "same configuration to continue."
        )


def build_model(config: Config, num_classes: int, shape: tuple[int, ...]) -> nn.Module:
    """The model with initial weights that are a function of the seed, leaving the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        built: nn.Module = config.model.build(num_classes, shape)
    return built


def fingerprint(pool: Pool) -> str:
    """Tells when other rows or labels are behind the same name; what the rows hold is told by `Pool.contents`."""
    digest = hashlib.sha256(repr((pool.examples.shape, pool.class_names)).encode())
    digest.update(np.ascontiguousarray(pool.labels).data)
    digest.update(b"" if pool.weights is None else np.ascontiguousarray(pool.weights).tobytes())
    if pool.columns is not None:  # other words, days or another median: the features mean something else
        digest.update(repr(pool.columns).encode())
        for kept in ([column.since for column in pool.columns], [column.offset for column in pool.columns]):
            digest.update(repr(kept).encode() if any(kept) else b"")
    return digest.hexdigest()


def check_same_data(folder: RunFolder, pool: Pool, facts: dict[str, Any]) -> None:
    """A run is of the rows and labels that it was begun with: the rows it holds out are numbers of rows."""
    contents = facts.get("contents")  # None: of a run from before there was a hash of them, which may go on
    if facts.get("data") != fingerprint(pool) or contents not in (None, pool.contents):
        raise DataError(
            f"The data have changed since {folder.path} was begun, so it can no longer be judged or continued on them; "
            "train into a new folder, or put the data back as they were."
        )


def check_finished(folder: RunFolder, pool: Pool | None, model: nn.Module | None, facts: dict[str, Any]) -> None:
    """Labels added since are not in a finished run. A benchmark's never change, and data that are gone say nothing."""
    config = folder.config()
    if config is not None and pool is None and (config.data in BENCHMARKS or not is_there(config.data)):
        return
    check_same_data(folder, restore(folder, pool, model, "cpu").pool, facts)


def _split(config: Config, path: Path, pool: Pool) -> Split | None:
    source = config.source
    if source.split is not None and config.protocol is not None:
        raise ConfigError("Give a split or a protocol, not both: the split says who keeps a label already.")
    if source.held_out and config.protocol is None:
        raise ConfigError("held_out needs a protocol: without one every label there is, is trained on.")
    if path.exists() and (source.split is not None or config.protocol is not None):
        return Split.read(path)  # a continued run keeps its split, whatever would be drawn today
    if source.split is not None:
        return Split.read(source.split)
    if config.protocol is None:
        return None
    return make_split(pool, config.protocol, config.training.seed, source.held_out)


def _validation(config: Config, path: Path, pool: Pool) -> Indices | None:
    """Rows held out where nothing else can be evaluated on; a continued run keeps its own."""
    share = config.source.validation
    if pool.test_examples is not None or pool.hidden_labels is not None or share == 0.0:
        return None
    if path.exists():
        rows = validation.read(path)
    elif config.training.continue_from is not None:
        rows = held_out(config, pool)
    else:
        rows = validation.choose(pool, share, config.training.seed)
    return rows if len(rows) else None
