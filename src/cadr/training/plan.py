"""What a run will be: settings and data in, the complete configuration out. Nothing else decides it.

`cadr train`, `cadr compare` and `CADRClassifier` all come here, so that the same settings on the same data are the same
run. What nobody gave is, on somebody's own data, what the run that is there already has, or else chosen by the data; on
a benchmark and in a recipe it is what was published: the defaults of the parts.

A run of so many `minutes` is moved by Muon unless somebody names another optimiser, and has as many steps as go into
that time here: a few are timed, and their number is then as fixed as if it had been given. Muon's learning rate falls
to zero, and its average of the weights covers a twentieth of the run, whatever its length: it ends converged.

Own data that are features (a table, embeddings) are learned by the ensemble, unless somebody names an algorithm or a
setting that only a network has. Pictures themselves take a network.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from cadr.algorithms import Supervised
from cadr.config import CHOICES, HF, OF_NETWORKS, VIEWS, Config, Training, name_of, title_of, with_backbone
from cadr.data import BENCHMARKS, open_data
from cadr.data.description import columns_in_words
from cadr.data.pool import MISSING, Pool
from cadr.data.sources.registry import likely_kind
from cadr.diagnosis.result import Diagnosis
from cadr.ensemble.settings import INSTANT
from cadr.errors import ConfigError, DataError
from cadr.models import MLP, MODELS, choose
from cadr.models.pretrained import HuggingFace
from cadr.optim import Muon, averaged_over
from cadr.training.run_folder import RunFolder
from cadr.training.target import Target, diagnosed_target, takes_target
from cadr.training.warm_start import inherited
from cadr.utils import ranks
from cadr.utils.files import expand_home

if TYPE_CHECKING:
    from cadr.training.pace import Pace

ALGORITHM = "cadr"  # the paper's, on benchmarks
_NETWORKS = ("cap_cai", ALGORITHM)  # of own data: the first that has the settings that somebody named
ON_FEATURES = "ensemble"
SIZES = ("model", "steps", "batch", "ratio", "lr", "ema")
CHOSEN = (*SIZES, "target_prior")
SMALL = ("mlp", "convnet")
# in an ensemble
_IDLE = {"minutes", "validation", "evaluations", "checkpoint_seconds", "log_every", "precision", "compile"}
_ONCE_CHOSEN = ("evaluations",)  # of runs that are there, for which it was
_FEW = 4096  # rows
_SMALL = 2**18  # parameters of somebody's own network
_ANY = "given"  # data that were there already, whatever a configuration calls them


@dataclass(frozen=True, eq=False)
class Plan:
    """A run that can begin: its complete configuration, and what had to be opened and diagnosed to get there."""

    config: Config
    pool: Pool | None = None  # as it was opened; None: the run is there already, and opens its data if it needs them
    model: nn.Module | None = None  # of somebody's own
    target: Target | None = None  # None: somebody said what the classes' shares are, or nobody needs to know
    left_open: tuple[str, ...] = ()  # settings that the data have chosen
    why: str = ""  # the algorithm is what it is, where the data have chosen it
    pace: Pace | None = None  # that was measured for a run of so many minutes

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Of the labels, where one was made."""
        return None if self.target is None else self.target.diagnosis

    def sentences(self) -> list[str]:
        """What was chosen for somebody who did not say, as flags that would say otherwise; what a table was taken for.

        Nothing about a run that is there already, or that somebody else wrote down.
        """
        paced = [] if self.pace is None else [self.pace.sentence()]
        if self.pool is None or not self.left_open:
            return paced
        if self.config.is_instant:
            return [*self._method(), *columns_in_words(self.pool)]
        settled = self.config.to_dict()
        names = [name for name in CHOSEN if name in self.left_open and settled.get(name)]
        flags = [f"--{name.replace('_', '-')} {_words(settled[name])}" for name in names]
        words = [*paced, f"Chosen by the data: {' '.join(flags)}"] if flags else paced
        words += [] if self.target is None else self.target.sentences()
        words += self._prospects()
        if self.pool.kind == "image" and "flip" in self.left_open:
            words.append("Half of the images are mirrored: add --no-flip where left and right matter, as in letters.")
        return [*self._method(), *words, *columns_in_words(self.pool)]

    def _prospects(self) -> list[str]:
        """What to expect of a small network that learns pictures from nothing, and what to do instead."""
        if self.pool is None or self.pool.kind != "image" or self.model or name_of(self.config.model) not in SMALL:
            return []
        linear = ""
        if self.diagnosis is not None:
            linear = (
                " A linear classifier of their pixels finds "
                f"{100 * self.diagnosis.balanced_accuracy:.0f} % of labels that it has not seen (mean recall): of "
                "simple drawings expect more, of photographs hardly more."
            )
        return [
            f"These pictures are learned from nothing.{linear} Photographs are learned far better, and in seconds, "
            "from what a pretrained model makes of them: --features (docs/features.md)."
        ]

    def _method(self) -> list[str]:
        """How it learns and why, where nobody said how."""
        return [self.why] if self.why else []


class Opened:
    """Data that are opened when they are first needed and diagnosed at most once, for however many runs on them."""

    def __init__(self, pool: Pool | None = None) -> None:
        self._pool, self._of = pool, None if pool is None else _ANY
        self._target: Target | None = None

    @property
    def given(self) -> bool:
        """Whether somebody has opened them before."""
        return self._of == _ANY

    def pool(self, config: Config) -> Pool:
        """The data of this configuration; those before are let go if they were others."""
        if self._pool is None or self._of not in (_ANY, _source_of(config)):
            self._pool = self._target = None
            self._pool, self._of = open_source(config), _source_of(config)
        return self._pool

    def target(self, config: Config) -> Target:
        pool = self.pool(config)
        self._target = self._target or diagnosed_target(pool)
        return self._target


def plan(
    settings: Mapping[str, Any],
    data: Opened | Pool | None = None,
    model: nn.Module | None = None,
    *,
    out: Path | str | None = None,
    recipe: bool = False,
    complete_labels: bool = False,
) -> Plan:
    """The run that is asked for with `settings`, by the names of the flags.

    Without `data`, those that the settings name are opened. A `model` of somebody's own takes the place of one by name.
    If there is a run in the folder `out`, it stays what it is. A `recipe` is complete as it was written. Own data whose
    labels are all known are refused unless `complete_labels`.
    """
    began = time.monotonic()
    opened = data if isinstance(data, Opened) else Opened(data)
    settings = _moved(settings)
    before = None if out is None else RunFolder(out).config()
    settings = _with_own_size(inherited(settings, before), opened, before)
    flat = _without_idle({"algorithm": ALGORITHM if before is None else name_of(before.algorithm), **settings})
    config = Config.from_dict(_without_unnamed(flat))
    if before is not None:
        return Plan(_as_before(flat, before, own=is_own(config) and not recipe), model=model)
    pool, why = opened.pool(config), ""
    if not recipe and is_own(config) and "algorithm" not in settings:
        name, why = _algorithm(settings, pool, model)
        flat = _without_idle(flat | {"algorithm": name})
    config = Config.from_dict(_without_unnamed(flat))
    if config.is_instant:
        if is_own(config) and not recipe and not complete_labels:
            _check_missing(config, pool)
        return Plan(complete(config, pool, model), pool, left_open=("algorithm",) if why else (), why=why)
    flat.setdefault("views", pool.kind)
    if recipe or not is_own(config):
        chosen = {} if model is not None else {"model": choose(input_shape(pool))}
        pace = _paced(flat, chosen, pool, model, began)
        flat = _averaged(flat if pace is None else pace.settings(flat))
        return Plan(complete(Config.from_dict(chosen | flat), pool, model), pool, model, pace=pace)
    if not complete_labels:
        _check_missing(config, pool)
    target = None if "target_prior" in flat or not takes_target(type(config.algorithm)) else opened.target(config)
    told = {} if target is None or target.shares is None else {"target_prior": target.shares}
    device = device_of(config.training.device)
    pace = _paced(flat, sizes(pool, flat, device, model) | told, pool, model, began)
    flat = _averaged(flat if pace is None else pace.settings(flat))
    settled = complete(Config.from_dict(sizes(pool, flat, device, model) | told | flat), pool, model)
    left_open = tuple(name for name in (*CHOSEN, "flip") if name not in settings)
    return Plan(settled, pool, model, target, left_open, why, pace)


def chosen_algorithm(settings: Mapping[str, Any], opened: Opened) -> str:
    """The algorithm of the run that `plan` makes of these settings where no run is there yet."""
    settings = inherited(settings)
    if "algorithm" in settings:
        return str(settings["algorithm"])
    settings = _with_own_size(settings, opened)
    config = Config.from_dict(_without_unnamed({"algorithm": ALGORITHM, **settings}))
    return _algorithm(settings, opened.pool(config), None)[0] if is_own(config) else ALGORITHM


def _with_own_size(settings: Mapping[str, Any], opened: Opened, before: Config | None = None) -> Mapping[str, Any]:
    """With the size of pictures that a pretrained network takes, where these are opened for it."""
    settings = with_backbone(dict(settings))
    data = str(settings.get("data", ""))
    if settings.get("model") != HF or settings.get("image_size") or opened.given or data in BENCHMARKS:
        return settings
    if likely_kind(expand_home(data)) == "features":
        return settings
    size = HuggingFace(str(settings.get("backbone", ""))).side if before is None else before.source.image_size
    return {**settings, "image_size": size}


def _algorithm(settings: Mapping[str, Any], pool: Pool, model: nn.Module | None) -> tuple[str, str]:
    """What own data are learned by where nobody says, and why."""
    names = (*_NETWORKS, ON_FEATURES)
    of = {name: {field.name for field in dataclasses.fields(CHOICES["algorithm"][name])} for name in names}
    network = next(name for name in _NETWORKS if not settings.keys() & (of[ALGORITHM] - of[name]))
    if pool.kind == "image":
        if network == ALGORITHM:
            return network, ""
        return network, (
            f"Chosen by the data, which are pictures: --algorithm {network}, which is ahead of the paper's {ALGORITHM} "
            "in the mean (docs/own-results.md)."
        )
    asked = [name for name in settings if name in (OF_NETWORKS | of[ALGORITHM]) - of[ON_FEATURES] - _IDLE]
    if model is not None or asked:
        said = "a network is given" if model is not None else f"--{asked[0].replace('_', '-')} is a network's"
        return network, (
            f"Chosen: --algorithm {network}, as {said}. Without that, these features are learned by --algorithm "
            f"{ON_FEATURES}, which takes seconds."
        )
    return ON_FEATURES, (
        f"Chosen by the data, which are features: --algorithm {ON_FEATURES}, simple learners with class-aware "
        f"imputation, stacked by cross-fitting. A network is trained with --algorithm {network}."
    )


def complete(config: Config, pool: Pool, model: nn.Module | None = None) -> Config:
    """The configuration with model and views chosen by the data where nobody has chosen them, checked against these."""
    if config.is_instant:
        _check_features(config, pool, model)
        return config
    if config.views is None:
        config = dataclasses.replace(config, views=VIEWS[pool.kind]())
    if not isinstance(config.views, VIEWS[pool.kind]):
        raise ConfigError(f"{pool.name} holds {pool.kind} data, so views must be {pool.kind!r}.")
    _check_turns(config, pool)
    if config.model is None and model is None:
        config = dataclasses.replace(config, model=MODELS[choose(input_shape(pool))]())
    if model is None and pool.kind == "features" and not isinstance(config.model, MLP):
        raise ConfigError(f"{title_of(config.model)} looks at pictures, but {pool.name} holds features; use mlp.")
    return config


def sizes(pool: Pool, given: Mapping[str, Any], device: torch.device, model: nn.Module | None = None) -> dict[str, Any]:
    """How long and how large to train, in keeping with what somebody has given.

    The numbers are rules of thumb: a hundred passes over the rows for small networks, five hundred for deep ones and
    thirty for pretrained ones, within limits.
    """
    chosen: dict[str, Any] = {}
    name = given.get("model")
    if name is None and model is None:
        name = choose(input_shape(pool))
        if device.type == "cpu" and name not in SMALL:
            name = "convnet"  # a deep network would take days
        chosen["model"] = name
    small = name in SMALL if model is None else sum(p.numel() for p in model.parameters()) <= _SMALL
    few = pool.num_streamed < _FEW
    batch, ratio = (32, 4) if small and few else (64, 7)
    passes, least, most, lr = (100, 500, 2**14, 0.1) if small else (500, 2**13, 2**17, 0.03)
    if name == HF:  # it knows most already, and large steps would undo that
        batch, ratio = 16, 4
        passes, least, most, lr = 30, 300, 2**12, 0.01
    steps = given.get("steps") or min(max(passes * pool.num_streamed // (batch * ratio), least), most)
    return chosen | {
        "steps": steps,
        "batch": batch,
        "ratio": ratio,
        "lr": lr,
        "ema": round(min(max(1 - 5 / steps, 0.5), 0.999), 4),  # remembers a fifth of a short run
    }


def is_own(config: Config) -> bool:
    """Whether the data are somebody's own, with labels missing as they are or as a protocol decides."""
    return config.data not in BENCHMARKS


def open_source(config: Config) -> Pool:
    """The data that a configuration names, as they are."""
    source = config.source
    return open_data(
        config.data,
        root=source.root,
        labels=source.labels,
        label_column=source.label_column,
        image_size=source.image_size,
        ignore_columns=source.ignore_columns,
        weight_column=source.weight_column,
        features=source.features,
        text_column=source.text_column,
        device=config.training.device,
    )


def _source_of(config: Config) -> str:
    return repr((config.data, config.source))


def input_shape(pool: Pool) -> tuple[int, ...]:
    """One example's shape as the model sees it: (3, h, w) or (d,)."""
    shape = pool.examples.shape[1:]
    return (shape[-1], *shape[:-1]) if pool.kind == "image" else shape


def device_of(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks.launched() > 1:
        name = f"cuda:{ranks.local()}"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"The device {name!r} cannot be used here ({reason}); try cpu.") from None
    return device


def _moved(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With Muon where a run is to take so many minutes and nobody names an optimiser."""
    return ({"optimiser": "muon"} if settings.get("minutes") is not None else {}) | dict(settings)


def _paced(
    flat: dict[str, Any], chosen: dict[str, Any], pool: Pool, model: nn.Module | None, began: float
) -> Pace | None:
    """How many steps go into the minutes that somebody gave without a number of steps."""
    if flat.get("minutes") is None or "steps" in flat:
        return None
    if ranks.launched() > 1:
        raise ConfigError("minutes are measured by one process; give steps to a run of several ranks.")
    from cadr.training.pace import measured

    return measured(complete(Config.from_dict(chosen | flat), pool, model), flat, pool, model, began)


def _averaged(flat: dict[str, Any]) -> dict[str, Any]:
    """With an average over a part of the run where Muon moves it."""
    if flat.get("optimiser") != "muon":
        return flat
    return {"ema": averaged_over(flat.get("steps", Training.steps))} | flat


def _without_unnamed(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Without settings of a network or of views that nobody has named: the data will, when they have been opened."""
    later = [kind for part in ("model", "views") if part not in flat for kind in CHOICES[part].values()]
    names = {field.name for kind in later for field in dataclasses.fields(kind)}
    return {name: value for name, value in flat.items() if name not in names}


def _without_idle(flat: dict[str, Any]) -> dict[str, Any]:
    """Without what a method that is fitted in one go does not heed."""
    instant = flat["algorithm"] in INSTANT
    return {name: value for name, value in flat.items() if not instant or name not in _IDLE}


def _as_before(flat: Mapping[str, Any], before: Config, own: bool) -> Config:
    """A run that is continued stays what it is, on whatever machine: what was left open is what was chosen then."""
    stored = before.to_dict()
    names = {*CHOSEN, *_ONCE_CHOSEN} if own else set()
    names |= {"steps", "evaluations"} if before.training.minutes is not None else set()
    names |= {"ema"} if isinstance(before.optimiser, Muon) else set()
    for part in ("model", "views"):
        if part not in flat and getattr(before, part) is not None:
            names |= {part, *(field.name for field in dataclasses.fields(getattr(before, part)))}
    return Config.from_dict({name: stored[name] for name in stored if name in names} | dict(flat))


def _check_missing(config: Config, pool: Pool) -> None:
    """Whole data are most likely a mistake: a protocol forgotten, or a file of truths taken for the file of labels."""
    thinned = config.protocol is not None or config.source.split is not None
    if thinned or (pool.labels == MISSING).any() or isinstance(config.algorithm, Supervised):
        return
    raise DataError(
        f"{pool.name}: no label is missing, so there is nothing to learn from but the labels; leave some out with "
        "--protocol, or train on them alone with --algorithm supervised."
    )


def _check_features(config: Config, pool: Pool, model: nn.Module | None) -> None:
    if model is not None:
        raise ConfigError(
            f"{name_of(config.algorithm)} trains no network, so none can be given; leave the algorithm out, or name "
            "one that trains it, such as cadr."
        )
    if pool.kind == "image":
        raise ConfigError(
            f"{name_of(config.algorithm)} learns from features, but {pool.name} holds pictures; add --features with a "
            "pretrained model that makes them, or use an algorithm that trains a network, such as cadr."
        )


def _check_turns(config: Config, pool: Pool) -> None:
    if not config.algorithm.rotates:
        return
    shape = pool.examples.shape[1:]
    if pool.kind != "image" or shape[0] != shape[1]:
        holds = f"images of {shape[1]}×{shape[0]} pixels" if pool.kind == "image" else "features"
        raise ConfigError(
            f"{name_of(config.algorithm)} turns square images, but {pool.name} holds {holds}; use another algorithm, "
            "or set the weight of its rotation loss to 0."
        )


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
