"""How to make a run again: the command, written from its configuration."""

from __future__ import annotations

import shlex
from typing import Any

from cadr.config import CHANGEABLE, CHOICES, Config, name_of, options_of


def command(config: Config, out: str) -> str:
    """The `cadr train` command of a run: what was chosen, and every setting that is not the default."""
    words = ["cadr", "train", config.data]
    for part in CHOICES:
        chosen = getattr(config, part)
        if chosen is not None:
            words += [f"--{part}", name_of(chosen)]
    for part in config.parts():
        hidden = CHANGEABLE if part is config.training else frozenset()
        for name, value in options_of(part).items():
            if name not in hidden:
                words += _flag(name, value)
    return shlex.join([*words, "--out", out])


def _flag(name: str, value: Any) -> list[str]:
    dashed = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{dashed}" if value else f"--no-{dashed}"]
    if value is None:
        return [f"--{dashed}", "none"]
    if isinstance(value, list):
        return [f"--{dashed}", *map(str, value)]
    return [f"--{dashed}", str(value)]


def settings(configs: list[Config]) -> list[tuple[str, list[str], bool]]:
    """Every setting of every run: name, values, and whether the runs differ in it."""
    flat = [config.to_dict() for config in configs]
    names = dict.fromkeys(name for one in flat for name in one)
    rows = []
    for name in names:
        values = [_shown(one.get(name)) for one in flat]
        rows.append((name, values, len(set(values)) > 1))
    return rows


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (" ".join(map(str, value)) or "–") if isinstance(value, list) else str(value)
