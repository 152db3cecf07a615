"""`cadr data`: look at data, decide who keeps a label, and see to the benchmarks' files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.flags import add_flags, add_root, add_source, given, open_source
from cadr.cli.terminal import show_table
from cadr.errors import DataError, ProtocolError
from cadr.utils.progress import fancy

if TYPE_CHECKING:
    from cadr.cli.main import Parser, Subparsers
    from cadr.data import Pool
    from cadr.data.benchmarks.download import Progress

DEFAULT_PROTOCOL = "longtail"


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "data",
        help="look at data, split it, get and verify benchmarks",
        description="Look at data, decide who keeps a label, and see to the benchmarks' files.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_show(commands)
    _add_split(commands)
    _add_verify(commands)
    _add_get(commands)


def _add_show(commands: Subparsers) -> None:
    parser = commands.add_parser("show", help="what is in the data, class by class")
    add_source(parser)
    parser.add_argument("--split", type=Path, metavar="FILE", help="show the data under this split.json")
    parser.set_defaults(run=show)


def _add_split(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "split",
        help="decide who keeps a label, and write it down",
        description="Decide which rows of fully labelled data keep their label, and write it to a file with a hash. "
        "The flags below are those of the chosen protocol: add --protocol mcar to see others.",
    )
    add_source(parser)
    parser.add_argument("--protocol", default=DEFAULT_PROTOCOL, metavar="NAME", help=_protocol_help())
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, another split (default: 1)")
    parser.add_argument(
        "--held-out",
        type=int,
        default=0,
        metavar="N",
        help="rows, balanced, kept out of both streams and tested on instead of the test part (default: 0)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the split; without it, only show it")
    parser.prepare = _add_protocol_flags
    parser.set_defaults(run=split)


def _add_verify(commands: Subparsers) -> None:
    parser = commands.add_parser("verify", help="which benchmarks are there, and whether they are as published")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks (default: all)")
    add_root(parser)
    parser.set_defaults(run=verify)


def _add_get(commands: Subparsers) -> None:
    parser = commands.add_parser("get", help="download a benchmark from its official address; resumes and verifies")
    parser.add_argument("name", metavar="NAME", help="the benchmark")
    add_root(parser)
    parser.set_defaults(run=get)


def _protocol_help() -> str:
    from cadr.data.protocols import PROTOCOLS

    return f"who keeps a label: {', '.join(PROTOCOLS)} (default: {DEFAULT_PROTOCOL})"


def _add_protocol_flags(parser: Parser, arguments: list[str]) -> None:
    from cadr.data.protocols import PROTOCOLS

    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--protocol", default=DEFAULT_PROTOCOL)
    name = first.parse_known_args(arguments)[0].protocol
    if name not in PROTOCOLS:
        from cadr.utils.options import unknown_choice

        raise ProtocolError(f"--protocol: {unknown_choice(name, PROTOCOLS)}")
    described = (PROTOCOLS[name].__doc__ or "").splitlines()[0]
    add_flags(parser.add_argument_group(f"protocol {name}", described), PROTOCOLS[name])


def show(arguments: argparse.Namespace) -> int:
    from cadr.data import Split, apply

    pool = open_source(arguments)
    _show(pool if arguments.split is None else apply(pool, Split.read(arguments.split)))
    return 0


def split(arguments: argparse.Namespace) -> int:
    from cadr.data import PROTOCOLS, apply, make_split

    kind = PROTOCOLS[arguments.protocol]
    protocol = kind(**given(arguments, kind))
    pool = open_source(arguments)
    made = make_split(pool, protocol, arguments.seed, arguments.held_out)
    _show(apply(pool, made))
    if arguments.out is not None:
        made.write(arguments.out)
        print(f"\nWritten to {arguments.out}, sha256 {made.sha256}.")
    return 0


def verify(arguments: argparse.Namespace) -> int:
    from cadr.data import BENCHMARKS
    from cadr.data.benchmarks import data_root
    from cadr.data.benchmarks.download import verify as findings_of

    for name in arguments.names:
        _check_benchmark(name)
    findings = [f for name in arguments.names or BENCHMARKS for f in findings_of(name, arguments.root)]
    rows = [[f.name, f.status, "" if f.path is None else str(f.path), f.remark] for f in findings]
    show_table(["benchmark", "status", "where", ""], rows, f"Benchmarks under {data_root(arguments.root)}")
    bad = {"damaged", "not there"} if arguments.names else {"damaged"}
    return 2 if any(f.status in bad for f in findings) else 0


def get(arguments: argparse.Namespace) -> int:
    from cadr.data.benchmarks.download import get as download

    _check_benchmark(arguments.name)
    with _Bar() as progress:
        paths = download(arguments.name, arguments.root, progress)
    for path in paths:
        print(f"{path}: verified")
    return 0


def _check_benchmark(name: str) -> None:
    from cadr.data import BENCHMARKS

    if name not in BENCHMARKS:
        from cadr.utils.options import unknown_choice

        raise DataError(unknown_choice(name, BENCHMARKS, "benchmark "))


def _show(pool: Pool) -> None:
    from cadr.data.description import class_table, heading

    if fancy():
        print(*heading(pool), sep="\n")
        show_table(*class_table(pool))
    else:
        print(pool.describe())


class _Bar:
    """A bar on a terminal; elsewhere a line at every tenth."""

    def __enter__(self) -> Progress:
        self.tenth = -1
        if not fancy():
            return self._line
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        self.bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self.tasks: dict[str, int] = {}
        self.bar.start()
        return self._draw

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "bar"):
            self.bar.stop()

    def _line(self, name: str, done: int, total: int | None) -> None:
        tenth = 10 * done // total if total else done >> 27
        if tenth != self.tenth:
            self.tenth = tenth
            print(f"{name}: {done / 1e6:.1f}" + (f" of {total / 1e6:.1f} MB" if total else " MB"), flush=True)

    def _draw(self, name: str, done: int, total: int | None) -> None:
        from rich.progress import TaskID

        if name not in self.tasks:
            self.tasks[name] = self.bar.add_task(name, total=total)
        self.bar.update(TaskID(self.tasks[name]), completed=done, total=total)
