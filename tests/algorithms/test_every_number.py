"""Every number that a method can be given changes what comes of training: one that is ignored is a lie."""

import dataclasses
from typing import Any

import pytest

from cadr.algorithms import ALGORITHMS
from cadr.errors import ConfigError
from tests.training import tiny

# What must be set beside a number, or it is not heeded in so short a run on features.
BESIDE: dict[str, dict[str, Any]] = {
    "crest": {"threshold": 0.3, "generations": 2},
    "crest_plus": {"threshold": 0.3, "generations": 2},
    "darp": {"threshold": 0.3},
    "remixmatch": {"lambda_r": 0.0},
    "effective_beta": {"weighting": "effective"},
    "least_share": {"target": "estimated", "warm_up": 0.0},
    "n_sigma": {"momentum": 0.5},
    "propensity_floor": {"propensity": "class"},
}
FAR = {"least_share": 1.0, "propensity_floor": 0.5, "updates": 4, "warm_up of darp": 0.6, "warm_up of dash": 512}
NEVER = {("remixmatch", "lambda_r")}  # of pictures that are turned
# A propensity of the class weights labelled rows, and so do these: the two are refused together.
NEVER |= {(f"cadr_{how}", "propensity_floor") for how in ("reweighting", "resampling", "logit_adjustment", "anchoring")}
NUMBERS = [
    (method, field.name)
    for method, kind in ALGORITHMS.items()
    for field in dataclasses.fields(kind)  # type: ignore[arg-type]
    if isinstance(field.default, int | float) and not isinstance(field.default, bool)
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What a method's run leaves, each trained once; classes have six labels, three and two."""
    pool, known = tiny.pool(), {}
    labels = pool.labels.copy()
    labels[[2, 5, 8, 11, 1, 4, 7]] = -1

    def train(algorithm):
        if algorithm not in known:
            out = tmp_path_factory.mktemp("run") / "run"
            settings = dataclasses.replace(tiny.config(steps=24, checkpoint_seconds=1e9), algorithm=algorithm)
            tiny.finish(settings, out, pool=dataclasses.replace(pool, labels=labels))
            known[algorithm] = {name: value.tolist() for name, value in tiny.tensors(out).items()}
        return known[algorithm]

    return train


def others(method, name, value):
    """Values to try, those that are allowed."""
    far = FAR.get(f"{name} of {method}", FAR.get(name))
    near = (value // 2, value + 1) if isinstance(value, int) else (value / 2, value + 1.0, 0.3)
    return near if far is None else (far,)


@pytest.mark.parametrize(("method", "name"), [pair for pair in NUMBERS if pair not in NEVER])
def test_it_is_heeded(method, name, trained):
    kind: Any = ALGORITHMS[method]
    default = kind(**(BESIDE.get(method, {}) | BESIDE.get(name, {})))
    for value in others(method, name, getattr(default, name)):
        try:
            other = dataclasses.replace(default, **{name: value})
        except ConfigError:
            continue
        if trained(other) != trained(default):
            return
    pytest.fail(f"{name} of {method} changes nothing")
