"""`--continue-from RUN`: a new run that begins with the weights of one that is there, and has its settings.

It holds out the labels that the run before it held out: of all others its weights may know the answers. An ensemble has
no weights to begin with, and is fitted anew to all labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cadr.config import CHOICES, Config
from cadr.data import validation
from cadr.data.pool import Pool
from cadr.data.validation import Indices
from cadr.ensemble.settings import INSTANT
from cadr.errors import CheckpointError, ConfigError, DataError
from cadr.models.feature_hooks import class_head
from cadr.training import checkpoint
from cadr.training.run_folder import RunFolder
from cadr.training.signature import InputSpec
from cadr.training.state import stored_average
from cadr.utils.files import expand_home

FLAG = "continue_from"


def inherited(settings: Mapping[str, Any], begun: Config | None = None) -> dict[str, Any]:
    """Settings, and those that nobody gave: of the run to continue from, or of the new one if it has `begun`."""
    given = dict(settings)
    if given.get(FLAG) is None:
        return given
    if begun is not None:
        return begun.to_dict() | given
    run = str(given[FLAG])
    before = _config(run).to_dict()
    before.pop(FLAG, None)
    if "algorithm" in given:
        check_continues(run, given["algorithm"] in INSTANT)
    for part, registry in CHOICES.items():  # what belongs to a part that another takes the place of
        if part in given and part in before and given[part] != before[part]:
            theirs = registry[before[part]].__dataclass_fields__
            before = {name: value for name, value in before.items() if name not in theirs}
    return before | given


def check_continues(run: str, instant: bool) -> None:
    """An ensemble goes on from an ensemble, a network from a network."""
    if _config(run).is_instant != instant:
        was, now = ("a network", "an ensemble") if instant else ("an ensemble", "a network")
        raise ConfigError(
            f"{run} is {was}, from which {now} cannot continue; leave --continue-from or the algorithm out"
        )


def begin_with(model: nn.Module, config: Config, pool: Pool) -> None:
    """Give a new model the averaged weights of the run before; its head goes by the classes' names."""
    run = _folder(config)
    spec, tensors = InputSpec.read(run), _tensors(run)
    if spec.kind != pool.kind:
        raise ConfigError(f"{run} has learned {spec.kind}, but {pool.name} holds {pool.kind}; name another run")
    head = class_head(model, pool.num_classes)
    rows = {name: row for row, name in enumerate(spec.class_names)}
    shared = [(new, rows[name]) for new, name in enumerate(pool.class_names) if name in rows]
    if not shared:
        raise ConfigError(f"{run} knows none of the classes of {pool.name}; name another run")
    ours, theirs = map(torch.tensor, zip(*shared, strict=True))
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            stored = stored_average(tensors, name)
            of_head = head and name in (f"{head}.weight", f"{head}.bias")
            if of_head and stored is not None and stored.shape == (len(rows), *tensor.shape[1:]):
                tensor[ours] = stored[theirs].to(tensor)
            elif stored is not None and stored.shape == tensor.shape and not of_head:
                tensor.copy_(stored)
            else:
                raise CheckpointError(
                    f"The weights of {run} are those of another network: {name} does not fit; use the same data "
                    "columns, size of pictures and network as there."
                )


def held_out(config: Config, pool: Pool) -> Indices:
    """The labels that the run before held out, of which its weights know nothing."""
    run = _folder(config)
    path = run / validation.FILE
    rows = validation.found_again(path, pool) if path.exists() else validation.NONE
    if not len(rows):
        raise DataError(
            f"{pool.name} has none of the labels that {run} held out, and of all others its weights may know the "
            "answers; add --validation 0 to hold none out"
        )
    return rows


def next_run(run: Path) -> Path:
    """run-2 after run, and so on: the first that is free."""
    found = re.fullmatch(r"(.*?)(?:-(\d+))?", run.name)
    assert found is not None
    number = int(found[2] or 1) + 1
    while (there := run.with_name(f"{found[1]}-{number}")).exists():
        number += 1
    return there


def _config(run: str) -> Config:
    found = RunFolder.there(expand_home(run)).config()
    if found is None:
        raise CheckpointError(f"{run} is not a run: it holds no config.toml; name the folder that train made.")
    return found


def _folder(config: Config) -> Path:
    assert config.training.continue_from is not None
    return expand_home(config.training.continue_from)


def _tensors(run: Path) -> dict[str, Tensor]:
    found, _ = checkpoint.newest(run)
    if found is None:
        raise CheckpointError(f"{run} has no checkpoint yet, so there are no weights to begin with; train it first.")
    return found[0]
