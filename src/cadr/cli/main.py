"""The `cadr` command: subcommands, and the promise that a mistake in the input costs one sentence, not a traceback.

Each command is a file beside this one with `add(subparsers)`, which makes its parser and sets `run`, a function of the
parsed arguments that returns the exit status.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from cadr import __version__
from cadr.cli.terminal import complain, make_writable, silence, stopping_politely
from cadr.errors import brief, costs_a_sentence

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction["Parser"]

COMMANDS = (
    "data",
    "embed",
    "diagnose",
    "train",
    "evaluate",
    "predict",
    "export",
    "report",
    "label",
    "export-tasks",
    "compare",
    "recipes",
    "demo",
)
TRAINING = ("train", "compare", "demo")
INTERRUPTED = 130  # what shells report for a program stopped by Ctrl-C


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, and whose flags may depend on what was chosen."""

    prepare: Callable[[Parser, list[str]], None] | None = None
    """Called with the arguments before they are parsed: adds the flags of the chosen algorithm, protocol and so on."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.prepare is not None:
            prepare, self.prepare = self.prepare, None
            prepare(self, list(args or ()))
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        from cadr.utils.text import printable  # here, as it brings numpy along

        self.exit(2, f"{self.prog}: {printable(brief(message))}; see {self.prog} --help\n")


class CommandsFormatter(argparse.HelpFormatter):
    """Keeps the longest command on the line of its help: argparse forgets by how much it indents commands."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, COMMANDS)) + 2 * self._indent_increment


def parser(command: str | None = None) -> Parser:
    """The whole parser, or only one command's part of it: nobody waits for imports of commands that do not run."""
    top = Parser(
        prog="cadr",
        formatter_class=CommandsFormatter,
        description="Train classifiers when labels are missing not at random, and see how biased the labelling was.",
        epilog="Each command explains itself: cadr train --help.",
    )
    top.add_argument("--version", action="version", version=f"cadr {__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error (accepted anywhere)")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name in (command,) if command in COMMANDS else COMMANDS:
        importlib.import_module(f"cadr.cli.{name.replace('-', '_')}").add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    make_writable()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    with stopping_politely(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")  # of each damaged file, which our own sentence names
        return _status([a for a in arguments if a != "--debug"], debug)


def _status(arguments: list[str], debug: bool) -> int:
    try:
        try:
            return _carry_out(arguments)
        finally:
            _flush()
    except BrokenPipeError:  # the reader (head, less) went away, which is its right
        silence(sys.stdout)
        return 0
    except KeyboardInterrupt as request:
        if debug:
            raise
        complain(str(request) or "interrupted")
        return INTERRUPTED
    except Exception as error:
        if debug or not costs_a_sentence(error):
            raise
        complain(_sentence(error))
        return 2


def _flush() -> None:
    """That nobody reads the rest must not take the place of an error, or of a request to stop."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def _carry_out(arguments: list[str]) -> int:
    top = parser(next((a for a in arguments if not a.startswith("-")), None))
    namespace, unknown = top.parse_known_args(arguments)
    command = next((a for a in arguments if a in COMMANDS), None)
    if unknown:
        top.prog = f"cadr {command}" if command else top.prog  # whose help lists what there is
        top.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(top, command, unknown)}")
    if not hasattr(namespace, "run"):
        top.print_help()
        return 2
    try:
        status: int = namespace.run(namespace) or 0
    except BrokenPipeError:
        if command not in TRAINING:
            raise
        silence(sys.stdout)
        raise KeyboardInterrupt(
            "stopped, as nobody reads the output any more; the same command continues a run or a comparison"
        ) from None
    return status


def _meant(top: Parser, command: str | None, unknown: Sequence[str]) -> str:
    """The flag that was most likely meant by the first unknown one."""
    subparsers = next((a for a in top._actions if isinstance(a, argparse._SubParsersAction)), None)
    if command is None or subparsers is None:
        return ""
    flags = [flag for action in subparsers.choices[command]._actions for flag in action.option_strings]
    wrong = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
    near = get_close_matches(wrong, flags, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _sentence(error: Exception) -> str:
    from cadr.utils.text import printable

    if isinstance(error, MemoryError | RuntimeError):
        return "there is not enough memory for this; a smaller batch, ratio or network, or fewer views, need less"
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename} cannot be used: {error.strerror}" if error.filename else error.strerror
        return printable(brief(said))
    return printable(" ".join(str(error).split()))
