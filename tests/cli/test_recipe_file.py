"""Recipes as files: rows, shared settings, and what goes wrong."""

import pytest

from cadr.cli.main import main
from cadr.cli.recipes import is_recipe, our_recipes, read_recipe, read_rows
from cadr.errors import ConfigError

TEXT = """
[settings]
small = { data = "digits", protocol = "longtail", n_max = 20, gamma = 20, steps = 10, weight_decay = 5e-4 }
[rows]
small-cadr = { setting = "small", algorithm = "cadr", published = 93.79, tables = ["1", "2"] }
small-cai = { setting = "small", algorithm = "cai", beta = 1.0, weight_decay = 1e-3, published = 1, published_sd = 0.5 }
small-later = { setting = "small", algorithm = "next_year" }
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "paper.toml"
    path.write_text(TEXT)
    return path


def test_a_row_takes_what_it_shares_and_overrides_it(recipe):
    cadr, cai, _ = read_rows(recipe)
    shared = {"data": "digits", "protocol": "longtail", "n_max": 20, "gamma": 20, "steps": 10}
    assert cadr.values == shared | {"algorithm": "cadr", "weight_decay": 5e-4}
    assert (cadr.published, cadr.published_sd, cadr.tables, cadr.setting) == (
        93.79,
        None,
        ("1", "2"),
        "small",
    )
    assert cai.values == shared | {"algorithm": "cai", "beta": 1.0, "weight_decay": 1e-3}
    assert cai.published_sd == 0.5
    assert read_recipe(f"{recipe}:small-cai") == cai.values


def test_a_file_without_rows_is_one_recipe(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('data = "digits"\nsteps = 3\n')
    assert read_recipe(str(path)) == {"data": "digits", "steps": 3}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("a.toml", True), ("recipes/a.toml:row-1.0", True), ("digits", False), ("photos.toml.d", False)],
)
def test_what_is_a_recipe(spec, expected):
    assert is_recipe(spec) is expected


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (":small-cadre", TEXT, "has no row 'small-cadre'; did you mean 'small-cadr'?"),
        (":qqq", TEXT, "has no row 'qqq'; see them with cadr recipes"),
        ("", TEXT, "has several rows; name one as"),
        (":x", "steps = 3\n", "has no rows, so 'x' cannot be one of them; leave out ':x'"),
        ("", "steps = \n", "is not a TOML file"),
        (":a", '[rows]\na = { setting = "none" }\n', "row a: there is no setting 'none'"),
    ],
)
def test_mistakes_are_explained(tmp_path, name, text, sentence):
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_recipe(f"{path}{name}")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="there is no recipe"):
        read_recipe(str(tmp_path / "no.toml"))


def test_the_listing_marks_what_cannot_run_yet(recipe, capsys):
    assert main(["recipes", str(recipe)]) == 0
    lines = capsys.readouterr().out.splitlines()
    marked = [line.split()[0] for line in lines if line.endswith("not yet available")]
    assert marked == ["small-later"]
    assert any(line.split()[:1] == ["small-cai"] and "1.00 ± 0.50" in line for line in lines)
    assert main(["recipes", str(recipe), "--only", "cai"]) == 0
    assert "small-cadr" not in capsys.readouterr().out


def test_running_a_row_that_cannot_run_yet_says_so(recipe, capsys):
    assert main(["train", f"{recipe}:small-later"]) == 2
    error = capsys.readouterr().err
    assert "needs the algorithm 'next_year', which is not yet available" in error
    assert error.count("\n") == 1


def test_our_recipes_are_found_from_anywhere(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["recipes", "--only", "gamma50-cadr"]) == 0
    text = capsys.readouterr().out
    assert "recipes/hu2022.toml\n" in text
    assert "cifar10-gamma50-cadr " in text
    assert read_recipe("recipes/hu2022.toml:cifar10-gamma50-cadr")["algorithm"] == "cadr"
    (tmp_path / "recipes").mkdir()  # a folder of one's own comes first
    (tmp_path / "recipes" / "mine.toml").write_text(TEXT)
    assert main(["recipes"]) == 0
    assert "hu2022" not in capsys.readouterr().out
    with pytest.raises(ConfigError, match="there is no recipe"):
        read_recipe("recipes/hu2022.toml:cifar10-gamma50-cadr")


def test_a_package_brings_its_recipes_along(tmp_path, monkeypatch):
    monkeypatch.setattr("cadr.cli.recipes._PACKAGE", tmp_path)
    (tmp_path / "recipes").mkdir()
    assert our_recipes() == tmp_path / "recipes"
