"""The flags of a run, in two stages: first what is chosen (algorithm, protocol, model, views), then what that has.

The configuration of a run is flat, and so are recipes and flags: a flag beats the recipe's value, which beats the
default in the part's own dataclass.
"""

from __future__ import annotations

import argparse
import dataclasses
from argparse import Namespace
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from cadr.cli.flags import add_flags, flag, given
from cadr.cli.main import Parser
from cadr.cli.recipes import is_recipe, read_recipe
from cadr.config import CHOICES, DEFAULTS, FIXED, HF, Training, with_backbone
from cadr.data.sources.registry import likely_kind
from cadr.errors import ConfigError
from cadr.utils.options import unknown_choice

ALGORITHM = "cadr"
_DEFAULT = f"chosen by the data: an ensemble for features of your own, cap_cai for pictures; {ALGORITHM} on benchmarks"
_ORDER = ("algorithm", "protocol", "model", "views", "source", "optimiser", "training")
_HEADINGS = {"source": "data", "training": "training"}
_CHOICE_HELP = {
    "algorithm": f"how to learn (default: {_DEFAULT})",
    "protocol": "who keeps a label, on data whose labels are all known (default: labels are missing as they are)",
    "model": "the network (default: chosen by the data); hf:NAME tunes a pretrained one of Hugging Face",
    "views": "what is perturbed (default: chosen by the data; flags for images, or features where DATA are these)",
    "optimiser": "what moves the weights (default: sgd, as published; muon takes a tenth of the steps)",
}


def add_choices(parser: argparse.ArgumentParser, skip: tuple[str, ...] = ()) -> None:
    """The flags that decide which other flags there are."""
    group = parser.add_argument_group("choices (each brings flags of its own, shown below)")
    for part in _ORDER:
        if part in CHOICES and part not in skip:
            names = "{" + ",".join(f"{HF}:NAME" if name == HF else name for name in CHOICES[part]) + "}"
            group.add_argument(f"--{part}", metavar=names, default=argparse.SUPPRESS, help=_CHOICE_HELP[part])


class Choice(NamedTuple):
    """What is known before the flags themselves exist."""

    recipe: dict[str, Any]  # its values, less those of parts that the command line replaces
    named: dict[str, str]  # the names of the parts that somebody named
    classes: dict[str, type[Any]]  # the dataclasses whose fields are flags


def choose(arguments: list[str]) -> Choice:
    """The first stage: find the recipe and the chosen names, whatever the other flags are."""
    first = Parser(add_help=False)
    for part in CHOICES:
        first.add_argument(f"--{part}", default=argparse.SUPPRESS)
    chosen = with_backbone(vars(first.parse_known_args(arguments)[0]))
    backbone = {"backbone": chosen.pop("backbone")} if "backbone" in chosen else {}
    for part, name in chosen.items():
        if name not in CHOICES[part]:
            raise ConfigError(f"--{part}: {unknown_choice(name, CHOICES[part])}")
    spec = next((a for a in arguments if is_recipe(a)), None)
    recipe = read_recipe(spec) if spec else {}
    _check_available(recipe, chosen, spec)
    named = {part: recipe[part] for part in CHOICES if part in recipe} | chosen
    classes = {part: CHOICES[part][name] for part, name in named.items()}
    classes.setdefault("views", CHOICES["views"][_likely_views(arguments, recipe)])
    for part, name in DEFAULTS.items():
        classes.setdefault(part, CHOICES[part][name])
    return Choice(_without_replaced(recipe, chosen) | backbone, named, classes | FIXED)


def _likely_views(arguments: list[str], recipe: dict[str, Any]) -> str:
    """Whose flags to offer when nobody names the views: the data are opened only after the flags have been read."""
    if "features" in recipe or any(a.split("=")[0] == "--features" for a in arguments):
        return "features"
    values_of_labels = [after for flag, after in pairwise(arguments) if flag == "--labels"]  # of a folder of images
    data = [recipe.get("data", ""), *(a for a in arguments if a not in values_of_labels)]
    return "features" if any(likely_kind(Path(a)) == "features" for a in data) else "image"


def add_part_flags(parser: argparse.ArgumentParser, classes: dict[str, type[Any]], recipe: dict[str, Any]) -> None:
    """One group of flags per part, with the recipe's values as the defaults shown."""
    for part in sorted(classes, key=_ORDER.index):
        kind = classes[part]
        named = next((name for name, cls in CHOICES.get(part, {}).items() if cls is kind), "")
        add_flags(parser.add_argument_group(_HEADINGS.get(part, f"{part} {named}")), kind, recipe)


def prepare(parser: Parser, arguments: list[str]) -> None:
    """Add the flags of everything chosen in `arguments` to the parser of a single run."""
    choice = choose(arguments)
    choice.classes["algorithm"] = CHOICES["algorithm"][choice.named.get("algorithm", ALGORITHM)]
    add_part_flags(parser, choice.classes, choice.recipe)
    parser.set_defaults(choice=choice)


def read_flat(namespace: argparse.Namespace) -> dict[str, Any]:
    """The run that recipe and flags describe together, as one flat table."""
    choice: Choice = namespace.choice
    flat: dict[str, Any] = dict(choice.recipe)
    if not is_recipe(namespace.data):
        flat["data"] = namespace.data
    flat |= choice.named
    for kind in choice.classes.values():
        flat |= given(namespace, kind)
    if "views" not in flat and flat.keys() & {f.name for f in dataclasses.fields(choice.classes["views"])}:
        flat["views"] = next(name for name, kind in CHOICES["views"].items() if kind is choice.classes["views"])
    return flat


def stem(spec: str) -> str:
    """A name for what DATA is: of the row, of the recipe, or of the data."""
    return spec.rpartition(".toml:")[2] if ".toml:" in spec else Path(spec).stem or "data"


def default_out(spec: str, flat: dict[str, Any], algorithm: Callable[[], str]) -> Path:
    """runs/NAME-ALGORITHM-seedN, or runs/ROW-seedN: the same command finds its own folder again."""
    name = "" if is_recipe(spec) else f"-{algorithm()}"
    return Path("runs") / f"{stem(spec)}{name}-seed{flat.get('seed', Training.seed)}"


def _check_available(recipe: dict[str, Any], chosen: dict[str, Any], spec: str | None) -> None:
    for part, registry in CHOICES.items():
        if part in recipe and part not in chosen and recipe[part] not in registry:
            raise ConfigError(
                f"{spec} needs the {part} {recipe[part]!r}, which is not yet available; there are {', '.join(registry)}"
            )


def _without_replaced(recipe: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """The recipe less the settings of parts that the command line replaces by others that have no such setting."""
    dropped: set[str] = set()
    for part, name in chosen.items():
        old, new = CHOICES[part].get(recipe.get(part, name)), CHOICES[part].get(name)
        if old is not None and new is not None:
            dropped |= {f.name for f in dataclasses.fields(old)} - {f.name for f in dataclasses.fields(new)}
    return {key: value for key, value in recipe.items() if key not in dropped}


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
            words.append(f"{flag(key)} does not apply to {', '.join(others)}.")
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
