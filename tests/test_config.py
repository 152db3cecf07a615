"""A configuration survives its file, refuses what it does not know, and names what differs."""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadr.config import CHANGEABLE, CHOICES, FIXED, Config, Source, Training, difference, options_of
from cadr.errors import ConfigError
from cadr.optim import SGD
from cadr.utils.options import write_toml

CLASSES = [*FIXED.values(), *(cls for registry in CHOICES.values() for cls in registry.values())]


@pytest.mark.parametrize("part", CHOICES)
def test_every_part_survives_its_file(part):
    for cls in CHOICES[part].values():
        config = Config("digits", CHOICES["algorithm"]["cadr"]())
        config = dataclasses.replace(config, **{part: cls()})
        assert Config.from_toml(config.to_toml()) == config


def test_values_survive_their_file():
    config = Config(
        'a "quoted"\\path/ß',
        CHOICES["algorithm"]["cap"](target_prior=(0.1, 0.2, 0.7), form="batch"),
        model=CHOICES["model"]["mlp"](hidden=(7,)),
        source=Source(root="/somewhere", held_out=500),
        optimiser=SGD(lr=1.0 / 3.0),
        training=Training(steps=7, log_every=3),
    )
    assert Config.from_toml(config.to_toml()) == config


def test_the_file_is_complete():
    flat = tomllib.loads(Config("digits", CHOICES["algorithm"]["cadr"]()).to_toml())
    for cls in FIXED.values():
        for item in dataclasses.fields(cls):
            assert item.name in flat or item.default is None


@pytest.mark.parametrize("cls", CLASSES)
def test_none_is_a_default_wherever_it_is_allowed(cls):
    # The file leaves out what is None, and reads what is left out as the default: the two must agree.
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        if type(None) in typing.get_args(hints[item.name]):
            assert item.default is None, item.name


def test_flat_names_are_unique():
    for chosen in itertools.product(*(registry.values() for registry in CHOICES.values())):
        names = [f.name for cls in (*chosen, *FIXED.values()) for f in dataclasses.fields(cls)]
        names += ["data", *CHOICES]
        assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_field_has_help(cls):
    for item in dataclasses.fields(cls):
        assert item.metadata.get("help"), item.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('data = "x"\nalgorithm = "cadr"\nlearning_rate = 1', "no field 'learning_rate'"),
        ('data = "x"\nalgorithm = "cadr"\nthreshhold = 1', "did you mean threshold?"),
        ('data = "x"\nalgorithm = "fixmatch"\nbeta = 0.5', "no field 'beta'"),
        ('data = "x"\nalgorithm = "caddr"', "did you mean cadr?"),
        ('data = "x"\nalgorithm = ["cadr"]', "no algorithm called"),
        ('algorithm = "cadr"', "needs data"),
        ('data = "x"', "needs algorithm"),
        ('data = "x"\nalgorithm = "cadr"\nsteps = 1.5', "steps must be of type int"),
        ('data = "x"\nalgorithm = "cadr"\nsteps = true', "steps must be of type int"),
        ('data = "x"\nalgorithm = "cadr"\nlr = "fast"', "lr must be of type float"),
        ('data = "x"\nalgorithm = "cadr"\nlr = nan', "lr must be a finite number, got nan"),
        ('data = "x"\nalgorithm = "cadr"\ntarget_prior = [0.5, inf]', "target_prior must be a finite number, got inf"),
        ('data = "x"\nalgorithm = "cadr"\nlambda_u = -1', "lambda_u must lie between 0 and inf"),
        ('data = "x"\nalgorithm = "cadr"\nform = "inverse"', "form must be one of"),
        ('data = "x"\nalgorithm = "cadr"\nsteps = 0', "steps must be at least 1"),
        ('data = "x"\nalgorithm = "cadr"\nema = 1.0', "ema must be at least 0 and below 1"),
        ('data = "x"\nalgorithm = "cadr"\nprecision = "fp8"', "precision must be one of"),
        ("data = ", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(text, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        Config.from_toml(text)


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.toml cannot be read"):
        Config.read(tmp_path / "missing.toml")


def test_a_whole_number_is_a_fine_learning_rate():
    assert Config.from_toml('data = "x"\nalgorithm = "cadr"\nlr = 1').optimiser == SGD(lr=1.0)


def test_difference_names_fields_with_both_values():
    before = Config("digits", CHOICES["algorithm"]["cadr"](), model=CHOICES["model"]["mlp"]())
    after = Config("digits", CHOICES["algorithm"]["fixmatch"](threshold=0.9), training=Training(log_every=5))
    changed = difference(before, after)
    assert 'algorithm (was "cadr", now "fixmatch")' in changed
    assert "threshold (was 0.95, now 0.9)" in changed
    assert "log_every (was unset, now 5)" in changed
    assert 'model (was "mlp", now unset)' in changed
    assert difference(before, before) == []


def test_where_a_run_is_computed_is_no_difference():
    before = Config("digits", CHOICES["algorithm"]["cadr"]())
    after = dataclasses.replace(before, training=Training(device="cuda", compile="none", checkpoint_seconds=1.0))
    assert difference(before, dataclasses.replace(after, source=Source(root="/elsewhere"))) == []
    names = {f.name for cls in FIXED.values() for f in dataclasses.fields(cls)}
    assert names >= CHANGEABLE
    coarser = dataclasses.replace(before, training=Training(precision="bf16"))
    assert difference(before, coarser) == ['precision (was "auto", now "bf16")']


def test_options_are_what_differs_from_the_defaults():
    assert options_of(CHOICES["algorithm"]["cadr"]()) == {}
    assert options_of(CHOICES["algorithm"]["cap"](threshold=0.95, form="pinv")) == {"form": "pinv"}


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.one_of(
    st.booleans(), st.integers(-2**63, 2**63 - 1), st.floats(), st.text(), st.lists(st.text()), st.lists(st.floats()),
)))  # fmt: skip
def test_toml_reads_back(flat):
    assert repr(tomllib.loads(write_toml(flat))) == repr(flat)


def test_numpys_values_are_as_good_as_pythons():
    plain = {"steps": 30, "lr": 0.05, "flip": False, "target_prior": (0.25, 0.75), "hidden": (8, 4), "threshold": 0.9}
    chosen = {"data": "x", "algorithm": "cadr", "views": "image", "model": "mlp"}
    numpys = {
        "steps": np.int64(30),
        "lr": np.float64(0.05),
        "flip": np.bool_(False),
        "target_prior": np.array([0.25, 0.75]),
        "hidden": [np.int32(8), np.int64(4)],
        "threshold": np.array(0.9),
    }
    config = Config.from_dict(chosen | numpys)
    assert config == Config.from_dict(chosen | plain)
    assert Config.from_toml(config.to_toml()) == config
    assert type(config.optimiser.lr) is float
    unchecked = Config("x", CHOICES["algorithm"]["cadr"](), training=Training(steps=typing.cast(int, np.int64(7))))
    assert Config.from_toml(unchecked.to_toml()).training.steps == 7
    with pytest.raises(ConfigError, match=r"steps must be of type int, got 1\.5"):
        Config.from_dict(chosen | {"steps": np.float64(1.5)})
    with pytest.raises(ConfigError, match="lr must be a finite number, got nan"):
        Config.from_dict(chosen | {"lr": np.float32("nan")})
