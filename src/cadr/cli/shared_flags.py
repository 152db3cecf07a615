"""Which of several algorithms a flag is for: those that have it, and where it belongs to another setting, with that."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields
from typing import Any

from cadr.cli.flags import flag, given
from cadr.config import CHOICES

Told = dict[str, dict[str, Any]]


def told(namespace: Namespace) -> Told:
    """What recipe and flags say to each algorithm that is compared.

    A setting that is idle in one, as FixMatch's target without alignment, goes to the others. Where it would be idle in
    all it is left to them, which refuse it.
    """
    recipe = namespace.choice.recipe
    asked: Told = {}
    for name in dict.fromkeys(namespace.algorithms):
        kind = CHOICES["algorithm"][name]
        asked[name] = {f.name: recipe[f.name] for f in fields(kind) if f.name in recipe} | given(namespace, kind)
    idle = {name: _idle(CHOICES["algorithm"][name], settings) for name, settings in asked.items()}
    heeded = {key for name, settings in asked.items() for key in settings if key not in idle[name]}
    return {
        name: {key: value for key, value in settings.items() if key not in idle[name] or key not in heeded}
        for name, settings in asked.items()
    }


def not_concerned(namespace: Namespace) -> list[str]:
    """A sentence for every flag that is not for all of them."""
    asked = told(namespace)
    words = []
    for key in dict.fromkeys(key for settings in asked.values() for key in settings if hasattr(namespace, key)):
        others = [_named(name, key) for name, settings in asked.items() if key not in settings]
        if others:
            words.append(f"{flag(key)} does not concern {', '.join(others)}.")
    return words


def _named(algorithm: str, key: str) -> str:
    pair = _belonging(CHOICES["algorithm"][algorithm]).get(key)
    return algorithm if pair is None else f"{algorithm} (without {flag(pair[0])} {pair[1]})"


def _idle(kind: type[Any], settings: dict[str, Any]) -> set[str]:
    """Settings that belong to a value which another one does not have."""
    values = {f.name: f.default for f in fields(kind)} | settings
    return {key for key, (other, value) in _belonging(kind).items() if key in settings and values[other] != value}


def _belonging(kind: type[Any]) -> dict[str, tuple[str, str]]:
    return {f.name: pair for f in fields(kind) if (pair := f.metadata.get("belongs_to"))}
