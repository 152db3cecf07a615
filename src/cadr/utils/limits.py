"""How large a number may be: one of twenty digits shall cost a sentence, not an overflow deep inside a library."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from cadr.errors import ConfigError

SEED = 2**63 - 1  # a signed word, which is what orders are shuffled and generators seeded with
COUNT = 2**31 - 1
NUMBER = float(np.finfo(np.float32).max)  # what losses and weights are computed in
STEPS = 2**24  # all places where a log record is due are listed beforehand
ROWS = 2**20  # of a stream in one step: random row numbers have 24 bits
VIEWS = 2**10  # of an example in one step


def check_numbers(part: Any, **most: int) -> None:
    """Every number in the fields of a dataclass is finite and no larger than its kind, or `most` of its name, allows.

    How small it may be is for each part to say.
    """
    for item in dataclasses.fields(part):
        value = getattr(part, item.name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int | np.integer):
                _at_most(item.name, number, most.get(item.name, COUNT))
            elif isinstance(number, float | np.floating):
                if not math.isfinite(number):
                    raise ConfigError(f"{item.name} must be a finite number, got {number}.")
                _at_most(item.name, abs(number), NUMBER)


def _at_most(name: str, value: Any, most: float) -> None:
    if value > most:
        raise ConfigError(f"{name} must be at most {most if isinstance(most, int) else f'{most:.3g}'}, got {value}.")
