"""Settings as dataclasses: fields with their help, checked against type and limits, and written as TOML.

A field carries its own help, so that the command line needs no second list of options.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import types
import typing
from collections.abc import Iterable
from dataclasses import field
from typing import Any, TypeVar

import numpy as np

from cadr.errors import ConfigError

T = TypeVar("T")


def option(default: T, help: str, belongs_to: tuple[str, str] | None = None) -> T:  # noqa: A002
    """A field with a default and the sentence that `--help` shows for it.

    One that `belongs_to` a value of another field means nothing without it.
    """
    return field(default=default, metadata={"help": help, "belongs_to": belongs_to})


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


def build(cls: type[Any], flat: dict[str, Any]) -> Any:
    """A dataclass from the plain values that belong to its fields; the others are somebody else's."""
    hints = typing.get_type_hints(cls)
    values = {}
    for item in dataclasses.fields(cls):
        if item.name in flat:
            values[item.name] = convert(flat[item.name], hints[item.name], item.name)
        elif item.default is dataclasses.MISSING:
            raise ConfigError(f"{cls.__name__} needs a value for {item.name}.")
    return cls(**values)


def convert(value: Any, hint: Any, name: str) -> Any:
    """`value` as the annotated type, or an error that names the field: int for float is fine, the rest is not."""
    value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name} must be a finite number, got {value}.")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        lists = [kind for kind in arguments if typing.get_origin(kind) is tuple]
        if lists and isinstance(value, list | tuple):  # says what is wrong with its numbers
            return convert(value, lists[0], name)
        for kind in arguments:
            try:
                return convert(value, kind, name)
            except ConfigError:
                continue
    elif origin is typing.Literal:
        one_of(value, arguments, name)
        return value
    elif origin is tuple and isinstance(value, list | tuple):
        return tuple(convert(v, arguments[0], name) for v in value)
    elif dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return build(typing.cast(type[Any], hint), value)
    elif hint is float and isinstance(value, int) and not isinstance(value, bool):
        return _float(value, name)
    elif isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise ConfigError(f"{name} must be of type {getattr(hint, '__name__', hint)}, got {value!r}.")


def _float(value: int, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(f"{name} must be a number of at most 308 digits, got one of {len(str(value))}.") from None


def write_toml(flat: dict[str, Any]) -> str:
    """Scalars and lists of scalars as TOML; enough for a configuration, and no dependency."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in flat.items())


def toml_value(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)  # the shortest text that reads back as the same number
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's
    return "[" + ", ".join(toml_value(v) for v in value) + "]"


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, which grids and arithmetic make, as Python's: their text is no TOML."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


_LISTED = 20  # names in a sentence


def suggest(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or all of them, unless there are too many to be read."""
    near = difflib.get_close_matches(name, known := sorted(known), n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(known)}." if len(known) <= _LISTED else "see cadr train --help for those there are."


def unknown_choice(name: object, known: Iterable[object], what: str = "") -> str:
    """What is wrong with a name that is none of the known ones, for the end of a sentence."""
    choices = [str(choice) for choice in known]
    near = difflib.get_close_matches(str(name), choices, n=1)
    if near:
        return f"there is no {what}{name!r}, did you mean {near[0]}?"
    return f"expected one of {', '.join(choices)}, got {name!r}"


def check_known(flat: dict[str, Any], known: set[str]) -> None:
    for key in flat:
        if key not in known:
            raise ConfigError(f"The configuration has no field {key!r}: {suggest(key, known)}")


def at_least(value: float, least: float, name: str) -> None:
    if not value >= least:
        raise ConfigError(f"{name} must be at least {least:g}, got {value!r}.")


def share(value: float, name: str) -> None:
    if not 0.0 <= value < 1.0:
        raise ConfigError(f"{name} must be at least 0 and below 1, got {value!r}.")


def one_of(value: Any, allowed: tuple[Any, ...], name: str) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(str, allowed))}, got {value!r}.")
