"""Commands of the documentation that take too long to run are at least such as the programs understand."""

import argparse
import re
import runpy
import sys

import pytest

from benchmarks import reproduce
from cadr.cli.main import parser
from tests.pages import PAGES, ROOT, commands

COMMANDS = [(page.name, words) for page in [*PAGES, ROOT / "CONTRIBUTING.md"] for words in commands(page)]
# The method of the guide is there only while its own test runs; the others stand for something.
EXEMPT = {"pseudo_label", "COMMAND", "NAME"}


class Parsed(BaseException):
    """Instead of going on to work."""


def of(program):
    chosen = [(page, words) for page, words in COMMANDS if program(words[0]) and not EXEMPT & set(words)]
    cases = [pytest.param(words, id=f"{page}: {' '.join(words)}") for page, words in chosen]
    return pytest.mark.parametrize("words", cases)


def understood(words):
    """A `cadr` command line, read by its own parser and nothing else."""
    unknown = []
    try:
        _, unknown = parser(words[1]).parse_known_args([word for word in words[1:] if word not in ("[RUN", "…]")])
    except SystemExit as ended:
        return ended.code == 0  # --help
    return not unknown


@of(lambda program: program == "cadr")
def test_cadr(words, monkeypatch):
    monkeypatch.chdir(ROOT)  # where recipes lie
    assert understood(words)


def test_a_renamed_flag_would_be_noticed(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert not understood(["cadr", "train", "recipes/hu2022.toml:cifar10-gamma50-cadr", "--sede", "1"])
    assert not understood(["cadr", "predict", "run"])


@of(lambda program: program == "make")
def test_make(words):
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(words[1:]) <= set(targets)


PARSE = argparse.ArgumentParser.parse_known_args


def parse_and_stop(self, *arguments):
    """All arguments are read, by the parsers of subcommands too, and then the program ends."""
    with pytest.MonkeyPatch.context() as inside:
        inside.setattr(argparse.ArgumentParser, "parse_known_args", PARSE)
        raise Parsed(*PARSE(self, *arguments))


@of(lambda program: program.startswith("benchmarks/"))
def test_benchmarks(words, monkeypatch):
    script, *arguments = words
    if "ArgumentParser" not in (ROOT / script).read_text(encoding="utf-8"):
        assert not arguments, f"{script} takes no arguments"
        return
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", parse_and_stop)
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    with pytest.raises(Parsed) as parsed:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    monkeypatch.undo()
    namespace, flags = parsed.value.args
    if arguments[:1] == ["run"]:  # reproduce.py hands the flags that it does not know on to cadr train
        assert reproduce.plan(namespace.rows, namespace.seeds, flags)
    else:
        assert flags == []
