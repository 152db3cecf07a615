"""`cadr label RUN`: a page that asks for the labels that are worth most, and writes them where they belong."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.label import MOST, ROWS

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers

_DESCRIPTION = (
    "Show the unlabelled examples whose labels are worth most, one by one, on a page that only this machine can open: "
    "pictures, texts, or rows of a table. Every answer is written to the file of labels at once. After every ten the "
    "page says what they imply for the class shares, and it can train on with them. Ctrl-C ends it."
)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "label",
        usage="cadr label RUN [--most N] [--open] | --from FILE",
        help="label the right few, on a page",
        description=_DESCRIPTION,
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument(
        "--from",
        dest="export",
        type=Path,
        metavar="FILE",
        help="no page: take over the labels that Label Studio (JSON) or CVAT (XML) exports",
    )
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help=f"examples to ask for (default: {MOST})")
    parser.add_argument(
        "--rows", type=int, default=ROWS, metavar="N", help=f"unlabelled examples to choose among (default: {ROWS})"
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="where the page is served (default: any port)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    from cadr.errors import ConfigError

    if namespace.export is not None:
        return _take_over(namespace.folder, namespace.export)
    from cadr.label.server import Server, opened_in_browser
    from cadr.label.session import Session

    if not 0 <= namespace.port < 2**16:
        raise ConfigError(f"--port: expected a number from 0 to {2**16 - 1}, got {namespace.port}")
    session = Session(namespace.folder, namespace.most, namespace.rows, namespace.device)
    try:
        server = Server(session, namespace.port)
    except OSError as error:
        raise ConfigError(f"port {namespace.port} cannot be used ({error.strerror}); leave --port out") from None
    try:
        with server, opened_in_browser(server.address, namespace.open):
            state = session.state()
            asked, unlabelled = f"{state['asked']:,}", f"{state['unlabelled']:,}"
            print(f"{asked} of {unlabelled} unlabelled examples, those first whose labels are worth most.")
            print(f"Labels go to {state['where']}. Open this page, and keep its address to yourself:")
            print(f"\n  {server.address}\n\nCtrl-C ends it.", flush=True)
            server.serve_forever()
    except KeyboardInterrupt:
        print()
    session.trainer.wait()
    state = session.state()
    print(f"{state['total']:,} labelled; they are in {state['where']}.")
    if state["labelled"]:
        print(f"Learn from them:\n  {state['command']}")
    return 0


def _take_over(run: Path, export: Path) -> int:
    from cadr.label.incoming import take_over
    from cadr.utils.text import counted

    found = take_over(run, export)
    known = f"; {found.known:,} were there already" if found.known else ""
    print(f"{counted(found.new, 'label')} of {export} added to {found.where}{known}.")
    return 0
