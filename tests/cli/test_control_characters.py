"""Names with control characters are shown, not obeyed by the terminal."""

import io

import pytest
from rich.console import Console

from cadr.cli import terminal
from cadr.cli.main import main
from cadr.training import loggers
from cadr.utils.text import shown

RED = "\x1b[31mred"
READABLE = "\\x1b[31mred"


def test_a_path_in_a_sentence():
    assert shown(f"photos/{RED}.png") == f"photos/{READABLE}.png"
    assert shown("photos/Größe – 1.png") == "photos/Größe – 1.png"


@pytest.mark.parametrize("arguments", [["data", "show", f"{RED}.csv"], ["train", "digits", f"--{RED}"]])
def test_a_mistake(arguments, capsys):
    try:
        status: object = main(arguments)
    except SystemExit as ended:
        status = ended.code
    error = capsys.readouterr().err
    assert status == 2
    assert READABLE in error
    assert "\x1b" not in error


def test_a_file_that_the_system_refuses(tmp_path, capsys):
    (tmp_path / f"{RED}.toml").mkdir()
    assert main(["recipes", str(tmp_path / f"{RED}.toml")]) == 2
    error = capsys.readouterr().err
    assert READABLE in error
    assert "\x1b" not in error


@pytest.mark.parametrize("fancy", [False, True])
def test_what_a_run_says(fancy, monkeypatch, capsys):
    screen = io.StringIO()
    monkeypatch.setattr("rich.progress.get_console", lambda: Console(file=screen, force_terminal=True, width=150))
    monkeypatch.setattr(loggers, "fancy", lambda: fancy)
    loggers.follow(record for record in [{"kind": "warning", "step": 1, "message": f"{RED} is never predicted"}])
    assert f"{READABLE} is never predicted" in capsys.readouterr().out + screen.getvalue()


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_table_shows_names_as_they_are(on_terminal, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "fancy", lambda: on_terminal)
    terminal.show_table(["class [n]", "recall"], [["[/n] a", "1.0"], [RED, "2.0"], ["[bold]b", "3.0"]])
    text = capsys.readouterr().out
    assert all(name in text for name in ("class [n]", "[/n] a", READABLE, "[bold]b"))
    assert RED not in text
