"""JSON and TOML that nobody wrote by hand: one sentence in every command that reads them, never a traceback."""

from __future__ import annotations

import shutil
import sys

import pytest

from cadr.cli.main import main
from cadr.utils.untrusted import DEEPEST, parse_json, parse_toml
from tests.report.own_runs import TINY


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [DEEPEST + 2, 900, 100_000])
def test_what_is_nested_too_deeply_is_a_value_error(depth):
    with pytest.raises(ValueError, match="nested more than 20 deep"):
        parse_json(nested(depth))
    with pytest.raises(ValueError, match="nested more than 20 deep"):
        parse_json('{"a":' * depth + "1" + "}" * depth)
    with pytest.raises(ValueError, match="nested more than 20 deep"):
        parse_toml("a = " + nested(depth))


def test_what_people_write_is_read():
    assert parse_json(nested(DEEPEST + 1)) is not None
    assert parse_json('{"a": [1, {"b": null}], "c": "[[["}') == {"a": [1, {"b": None}], "c": "[[["}
    assert parse_toml("a = [1, [2]]\n[b]\nc = 'x'") == {"a": [1, [2]], "b": {"c": "x"}}
    with pytest.raises(ValueError, match="digits"):
        parse_json("1" * (sys.get_int_max_str_digits() + 1))


FILES = {
    "metrics.jsonl": '{{"kind": "train", "step": {0}}}\n',
    "input.json": '{{"kind": {0}}}',
    "calibration.json": '{{"temperature": {0}}}',
    "validation.json": '{{"rows": {0}}}',
    "result.json": '{{"last": {0}}}',
    "config.toml": "data = {0}",
    "checkpoint/manifest.json": '{{"format": {0}}}',
}
COMMANDS = {
    "train": lambda run, out: [
        "train",
        str(run.parent / "trees.csv"),
        "--ignore-columns",
        "id",
        *TINY,
        "--out",
        str(run),
    ],
    "predict": lambda run, out: ["predict", str(run), str(run.parent / "trees.csv"), "--out", str(out / "p.csv")],
    "evaluate": lambda run, out: ["evaluate", str(run)],
    "export": lambda run, out: ["export", str(run), "--out", str(out / "e"), "--formats", "safetensors"],
    "report": lambda run, out: ["report", str(run), "--out", str(out / "r.html")],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("file", FILES)
def test_a_run_folder(file, command, trees, tmp_path, capsys):
    shutil.copytree(trees, tmp_path / "run")
    shutil.copy(trees.parent / "trees.csv", tmp_path / "trees.csv")
    config = (tmp_path / "run" / "config.toml").read_text().replace(str(trees.parent), str(tmp_path))
    (tmp_path / "run" / "config.toml").write_text(config)
    for depth in (900, 50_000):
        (tmp_path / "run" / file).write_text(FILES[file].format(nested(depth)))
        status = main(COMMANDS[command](tmp_path / "run", tmp_path))
        said = capsys.readouterr()
        assert status in (0, 2)  # not every command reads every file, and an older checkpoint takes the place of one
        assert len(said.err) < 600
        assert (said.err.count("\n") == 1 and said.err.startswith("cadr: ")) or status == 0


@pytest.mark.parametrize("command", ["train", "recipes"])
def test_a_recipe(command, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text("[row]\ndata = " + nested(50_000))
    arguments = {"train": [f"{path}:row", "--out", str(tmp_path / "run")], "recipes": [str(path)]}
    assert main([command, *arguments[command]]) == 2
    assert "nested more than 20 deep" in capsys.readouterr().err


def test_a_split(tmp_path, capsys):
    (tmp_path / "split.json").write_text(nested(50_000))
    assert main(["diagnose", "digits", "--split", str(tmp_path / "split.json")]) == 2
    assert "nested more than 20 deep" in capsys.readouterr().err
