"""Numbers that no part can use are refused where the part is made, whoever makes it: flags, a recipe or Python."""

from __future__ import annotations

import dataclasses
import typing

import numpy as np
import pytest

from cadr import CADRClassifier
from cadr.algorithms.base import target_distribution
from cadr.cli.main import main
from cadr.config import CHOICES, FIXED, Config, Training
from cadr.errors import CadrError, ConfigError

PARTS = [*FIXED.values(), *(cls for registry in CHOICES.values() for cls in registry.values())]


def fields_of(kind):
    """The numbers of all parts: whose, their name, and whether there may be several."""
    found = []
    for part in PARTS:
        hints = typing.get_type_hints(part)
        for item in dataclasses.fields(part):
            arguments = typing.get_args(hints[item.name])
            if kind in (arguments or (hints[item.name],)):
                many = typing.get_origin(hints[item.name]) is tuple
                found.append(pytest.param(part, item.name, many, id=f"{part.__name__}-{item.name}"))
    return found


@pytest.mark.parametrize(("part", "name", "many"), fields_of(int))
def test_twenty_digits_are_too_many(part, name, many):
    for number in (10**20, 10**400, np.uint64(2**64 - 1)):
        with pytest.raises(CadrError, match=rf"^(\w+: )?{name} (must|lies)"):
            part(**{name: (number,) if many else number})


@pytest.mark.parametrize(("part", "name", "many"), fields_of(float))
@pytest.mark.parametrize("number", [1e300, float("inf"), float("nan")])
def test_floats_are_those_of_float32(part, name, many, number):
    with pytest.raises(CadrError, match=rf"{name} (must|lies)"):
        part(**{name: (number,) if many else number})


def test_a_batch_has_room_for_its_rows():
    assert Training(batch=2**10, ratio=2**10)
    with pytest.raises(ConfigError, match="batch times ratio must be at most 1048576, got 2048 times 1024"):
        Training(batch=2**11, ratio=2**10)


def test_the_largest_seed():
    assert Training(seed=2**63 - 1)
    with pytest.raises(ConfigError, match="seed must be at most 9223372036854775807, got 9223372036854775808"):
        Training(seed=2**63)


@pytest.mark.parametrize("seed", ["9223372036854775808", "99999999999999999999999"])
def test_a_refused_run_leaves_no_folder(tmp_path, capsys, seed):
    assert main(["train", "digits", "--seed", seed, "--steps", "3", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == f"cadr: seed must be at most 9223372036854775807, got {seed}.\n"
    assert not (tmp_path / "run").exists()


def test_a_recipe_and_the_classifier_are_told_too(tmp_path, capsys):
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'data = "digits"\nalgorithm = "prg"\nbatches = {10**20}\n')
    assert main(["train", str(recipe), "--out", str(tmp_path / "run")]) == 2
    assert "batches must be at most" in capsys.readouterr().err
    rows = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ConfigError, match="steps must be at most"):
        CADRClassifier(steps=10**20).fit(rows, [0, 1] * 10)


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_that_is_no_float_at_all(tmp_path, capsys, digits):
    text = f'data = "digits"\nalgorithm = "cadr"\nlr = {"9" * digits}\n'
    with pytest.raises(ConfigError, match=r"308 digits|4300 digits"):
        Config.from_toml(text)
    recipe = tmp_path / "r.toml"
    recipe.write_text(text)
    assert main(["train", str(recipe)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("command", [["demo", "--seeds"], ["compare", "digits", "--seeds"]])
@pytest.mark.parametrize("many", ["0", "-1", "9" * 20, "9" * 5000])
def test_nobody_waits_for_so_many_seeds(capsys, command, many):
    with pytest.raises(SystemExit) as ended:
        main([*command, many])
    assert ended.value.code == 2
    assert "expected a whole number from 1 to 1000" in capsys.readouterr().err


@pytest.mark.parametrize("share", [0.0, -1.0, 1e-300, 3e38])
def test_a_target_is_told_from_nothing(share):
    with pytest.raises(ConfigError, match="target_prior must be positive for every class"):
        target_distribution((share,) * 3, 3)
