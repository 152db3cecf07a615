"""Between dataclasses, plain values and TOML: every value is checked against the type of its field."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import types
import typing
from collections.abc import Iterable
from typing import Any

import numpy as np

from cadr.errors import ConfigError


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


def suggest(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or all of them."""
    near = difflib.get_close_matches(name, known := sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."


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
