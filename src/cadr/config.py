"""Everything that decides a run, composed from the parts' own dataclasses; written to and read from TOML.

A default lives in the dataclass of its part and nowhere else. The file is flat, as the command line is: what it does
not mention takes its default, and what it mentions but no part knows is an error.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cadr.algorithms import ALGORITHMS
from cadr.augment import FeatureViews, ImageViews
from cadr.data.protocols import PROTOCOLS
from cadr.ensemble.settings import INSTANT, Ensemble
from cadr.errors import ConfigError
from cadr.models import MODELS
from cadr.models.pretrained import HuggingFace
from cadr.optim import OPTIMISERS, SGD, Optimiser
from cadr.utils.options import (
    ROWS,
    SEED,
    STEPS,
    at_least,
    build,
    check_known,
    check_numbers,
    one_of,
    option,
    share,
    suggest,
    toml_value,
    write_toml,
)
from cadr.utils.untrusted import parse_toml, read_text

VIEWS: dict[str, type[Any]] = {"image": ImageViews, "features": FeatureViews}


@dataclass(frozen=True)
class Source:
    """Where the examples and labels come from, beside the data set's name or path."""

    root: str | None = option(None, "folder that holds the benchmark files")
    labels: str | None = option(
        None, "CSV of file,label for a folder, of row,label for a table; what Label Studio or CVAT export"
    )
    label_column: str = option("label", "name of the label column of a table")
    image_size: int | None = option(None, "side in pixels to which images are resized")
    split: str | None = option(None, "split.json that says who keeps a label, instead of a protocol")
    held_out: int = option(0, "training examples kept out of both streams and evaluated on instead of the test set")
    validation: float = option(
        0.2, "share of the labels held out to evaluate and calibrate on, where there is no test set; 0: none"
    )
    ignore_columns: tuple[str, ...] = option((), "columns of a table that are no features: identifiers, dates, notes")
    weight_column: str | None = option(None, "column of a table that says for how many rows each one counts")
    features: str | None = option(
        None, "pretrained model for pictures or texts: its Hugging Face name, its folder, or an .onnx file"
    )
    text_column: str | None = option(None, "column of a table that is a text, whatever it looks like")

    def __post_init__(self) -> None:
        check_numbers(self)
        at_least(self.held_out, 0, "held_out")
        share(self.validation, "validation")


@dataclass(frozen=True)
class Training:
    """How long, how large, how often, and on what."""

    steps: int = option(2**17, "training steps; the schedule ends with them")
    minutes: float | None = option(
        None, "how long the run may take: as many steps as go into that here, moved by Muon unless another is named"
    )
    batch: int = option(64, "labelled examples per step")
    ratio: int = option(7, "unlabelled examples per labelled one")
    seed: int = option(1, "decides the split, the initial weights, the batches and the views")
    evaluations: int = option(128, "evaluations of the averaged model, evenly spread")
    log_every: int | None = option(
        None, "steps between log records (default: a quarter of the evaluation interval, at least 10)"
    )
    continue_from: str | None = option(None, "run whose weights a new one begins with, and whose settings it has")
    pretrain: int = option(
        0, "steps without labels before the first one, from which names spread over a graph of neighbours; 0: none"
    )
    renaming: bool = option(
        False, "check after each quarter of the run whether classes have swapped labels, and swap them back"
    )
    checkpoint_seconds: float = option(60.0, "least time between checkpoints; 0 writes one with every log record")
    device: str = option("auto", "auto, cpu, cuda or cuda:N")
    precision: str = option("auto", "auto (bf16 on a GPU, fp32 on a CPU), fp32 or bf16")
    compile: str = option(
        "auto", "what torch.compile takes: none, losses, or all (the network too); auto is all where that pays"
    )

    batch_norm: str = option(
        "global", "of several ranks: global (statistics of all rows, as of one process) or rank (of each rank's own)"
    )

    def __post_init__(self) -> None:
        check_numbers(self, steps=STEPS, pretrain=STEPS, batch=ROWS, ratio=ROWS, seed=SEED)
        for name in ("steps", "batch", "ratio", "evaluations"):
            at_least(getattr(self, name), 1, name)
        if self.batch * self.ratio > ROWS:
            raise ConfigError(f"batch times ratio must be at most {ROWS}, got {self.batch} times {self.ratio}.")
        at_least(self.seed, 0, "seed")
        at_least(self.checkpoint_seconds, 0.0, "checkpoint_seconds")
        at_least(self.pretrain, 0, "pretrain")
        if self.minutes is not None:
            at_least(self.minutes, 0.0, "minutes")
        if self.log_every is not None:
            at_least(self.log_every, 1, "log_every")
        one_of(self.precision, ("auto", "fp32", "bf16"), "precision")
        one_of(self.batch_norm, ("global", "rank"), "batch_norm")
        one_of(self.compile, ("auto", "none", "losses", "all"), "compile")


@dataclass(frozen=True)
class Config:
    """A whole run. `model` and `views` may be left to the data: None is resolved when the data has been opened."""

    data: str
    algorithm: Any  # one of ALGORITHMS, or of INSTANT
    protocol: Any = None  # one of PROTOCOLS, or None where labels are missing already
    model: Any = None  # one of MODELS, or None
    views: Any = None  # one of VIEWS, or None
    source: Source = field(default_factory=Source)
    optimiser: Optimiser = field(default_factory=SGD)
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        if self.training.renaming and not self.algorithm.renamed:
            raise ConfigError(
                f"{name_of(self.algorithm)} has state by class that renaming cannot swap; leave renaming out, or use "
                "another algorithm."
            )

    def to_dict(self) -> dict[str, Any]:
        """Flat, as on the command line: the name of every chosen part, then every field; what is None is left out."""
        flat: dict[str, Any] = {"data": self.data}
        flat |= {part: name_of(getattr(self, part)) for part in CHOICES if getattr(self, part) is not None}
        for part in self.parts():
            flat |= {f.name: _plain(getattr(part, f.name)) for f in dataclasses.fields(part)}
        idle = OF_NETWORKS if self.is_instant else frozenset()
        return {name: value for name, value in flat.items() if value is not None and name not in idle}

    @property
    def is_instant(self) -> bool:
        """Whether it is fitted in one go: no network is trained."""
        return isinstance(self.algorithm, Ensemble)

    def parts(self) -> list[Any]:
        """The dataclasses this configuration is made of."""
        return [part for name in (*CHOICES, *FIXED) if (part := getattr(self, name)) is not None]

    def to_toml(self) -> str:
        return write_toml(self.to_dict())

    @staticmethod
    def from_dict(flat: dict[str, Any]) -> Config:
        if not isinstance(flat.get("data"), str):
            raise ConfigError(f'A configuration needs data = "…" (a name or a path), got {flat.get("data")!r}.')
        if "algorithm" not in flat:
            raise ConfigError(f'A configuration needs algorithm = "…", one of {", ".join(ALGORITHMS)}.')
        flat = with_backbone(flat)
        named = DEFAULTS | flat
        chosen = {part: _named(registry, named[part], part) for part, registry in CHOICES.items() if part in named}
        classes = chosen | FIXED
        known = {f.name for cls in classes.values() for f in dataclasses.fields(cls)}
        check_known(flat, {"data", *CHOICES} | known)
        if issubclass(chosen["algorithm"], Ensemble):
            _check_of_no_network(flat)
        return Config(data=flat["data"], **{part: build(cls, flat) for part, cls in classes.items()})

    @staticmethod
    def from_toml(text: str) -> Config:
        try:
            flat = parse_toml(text)
        except ValueError as error:  # not only TOMLDecodeError: a number may have too many digits for Python
            raise ConfigError(f"The configuration is not valid TOML ({error}); correct it by hand.") from None
        return Config.from_dict(flat)

    @staticmethod
    def read(path: Path | str) -> Config:
        try:
            text = read_text(Path(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The configuration {path} cannot be read ({error}).") from None
        return Config.from_toml(text)


HF = "hf"
CHOICES: dict[str, dict[str, type[Any]]] = {
    "protocol": PROTOCOLS,
    "algorithm": ALGORITHMS | INSTANT,
    "model": MODELS | {HF: HuggingFace},
    "views": VIEWS,
    "optimiser": OPTIMISERS,
}
FIXED: dict[str, type[Any]] = {"source": Source, "training": Training}
DEFAULTS = {"optimiser": "sgd"}  # of parts that are never left to the data

# What an instant method has no use for.
OF_NETWORKS = frozenset(
    {"model", "views", "optimiser", "validation"}
    | {
        f.name
        for kind in (*CHOICES["model"].values(), *VIEWS.values(), *OPTIMISERS.values(), Training)
        for f in dataclasses.fields(kind)
    }
) - {"seed", "device", "continue_from"}

# Where a run is computed, and how often it is saved, may change when it is continued.
CHANGEABLE = frozenset({"root", "device", "compile", "checkpoint_seconds"})


def with_backbone(flat: dict[str, Any]) -> dict[str, Any]:
    """`hf:NAME` is the model `hf` with this backbone."""
    kind, _, name = str(flat.get("model", "")).partition(":")
    return flat | {"model": HF, "backbone": name} if kind == HF and name else flat


def difference(before: Config, after: Config) -> list[str]:
    """The fields that make `after` another run than `before`, each with both values."""
    old, new = before.to_dict(), after.to_dict()
    names = [name for name in {**old, **new} if name not in CHANGEABLE and old.get(name) != new.get(name)]
    return [f"{name} (was {_shown(old.get(name))}, now {_shown(new.get(name))})" for name in names]


def name_of(part: Any) -> str:
    """The name under which a protocol, algorithm, model or kind of views is registered; its class name otherwise."""
    for registry in CHOICES.values():
        for name, cls in registry.items():
            if type(part) is cls:
                return name
    return type(part).__name__


def title_of(model: Any) -> str:
    """What a network is called for people."""
    return f"{HF}:{model.backbone}" if isinstance(model, HuggingFace) else name_of(model)


def options_of(part: Any) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    return {
        f.name: _plain(getattr(part, f.name)) for f in dataclasses.fields(part) if getattr(part, f.name) != f.default
    }


def _check_of_no_network(flat: dict[str, Any]) -> None:
    idle = sorted(OF_NETWORKS & flat.keys())
    if idle:
        raise ConfigError(
            f"{flat['algorithm']} trains no network, so it has no {idle[0]}; leave that out, or name an algorithm that "
            "trains one, such as cadr."
        )


def _named(registry: dict[str, type[Any]], name: Any, part: str) -> type[Any]:
    if not isinstance(name, str) or name not in registry:
        raise ConfigError(f"There is no {part} called {name!r}: {suggest(str(name), registry)}")
    return registry[name]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return "unset" if value is None else toml_value(value)
