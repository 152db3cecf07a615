"""The page's server, with Python's own http.server: four files and five requests need no framework to be installed.

Only this machine is listened to, and that is not enough: any page that is open in a browser here can send requests
here, and other people may be logged in. So every address begins with a random token, which is on no command line; a
request must name this server as its host (or a site could give its own name to 127.0.0.1) and, where it changes
anything, come from this page. Nothing is loaded from elsewhere, and no text of the data is ever taken for HTML.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from cadr.errors import CadrError
from cadr.label.session import Session, State
from cadr.utils.untrusted import parse_json

HOST = "127.0.0.1"
_TYPES = {"": "text/html", "page.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}
_LARGEST = 10_000  # bytes of a request's body
_SECONDS = 60  # that a connection may be idle
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RefusedError(Exception):
    """A request that is none of ours, with the status to answer."""

    def __init__(self, status: HTTPStatus, words: str) -> None:
        super().__init__(words)
        self.status = status


class Server(ThreadingHTTPServer):
    """Serves one session on a port of its own choosing, unless one is named."""

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self.session, self.token = session, secrets.token_urlsafe(24)
        self.origins = {f"http://{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """That somebody closed the page while it loaded is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    server_version, sys_version = "cadr", ""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, handle: Callable[[str], tuple[str, bytes]]) -> None:
        try:
            status, (kind, content) = HTTPStatus.OK, handle(self._path())
        except RefusedError as refusal:
            self.close_connection = True  # what is left of its body is not read
            status, kind, content = refusal.status, "text/plain", str(refusal).encode()
        except (CadrError, OSError) as error:
            status, kind, content = HTTPStatus.CONFLICT, "application/json", _json({"problem": str(error)})
        self._send(status, kind, content)

    def _path(self) -> str:
        """What follows the token."""
        if self.headers.get("Host") not in {origin.removeprefix("http://") for origin in self.server.origins}:
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "This is not the server that was asked for.")
        _, token, path = (*self.path.partition("?")[0].split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "There is nothing here; use the address that cadr label has printed."
            )
        return path

    def _get(self, path: str) -> tuple[str, bytes]:
        if path in _TYPES:
            return _TYPES[path], (files("cadr.label") / "page" / (path or "index.html")).read_bytes()
        if path == "state":
            return "application/json", _json(self.server.session.state())
        found = re.fullmatch(r"picture/(\d{1,18})", path)
        picture = self.server.session.picture(int(found[1])) if found else None
        if picture is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is nothing here.")
        return picture

    def _post(self, path: str) -> tuple[str, bytes]:
        self._check_from_page()
        body, session = self._body(), self.server.session
        actions: dict[str, Callable[[], State]] = {
            "label": lambda: session.label(_whole(body, "row"), _word(body, "label")),
            "skip": lambda: session.skip(_whole(body, "row")),
            "cannot-tell": lambda: session.skip(_whole(body, "row"), cannot_tell=True),
            "undo": session.undo,
            "train": session.train,
        }
        if path not in actions:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is nothing here.")
        return "application/json", _json(actions[path]())

    def _check_from_page(self) -> None:
        """Browsers say where a request comes from; one of another site, or of a form, is not taken."""
        site, origin = self.headers.get("Sec-Fetch-Site"), self.headers.get("Origin")
        ours = site in (None, "same-origin") and (origin is None or origin in self.server.origins)
        if not ours or self.headers.get("Content-Type") != "application/json":
            raise RefusedError(HTTPStatus.FORBIDDEN, "Only the page of cadr label may do this.")

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > _LARGEST:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")
        try:
            body = parse_json(self.rfile.read(int(length)))
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "The request is not understood.")
        return body

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        text = kind.startswith("text/") or kind == "application/json"
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Nothing: the token would be in it."""


@contextmanager
def opened_in_browser(address: str, wanted: bool = True) -> Iterator[None]:
    """Open the page, by way of a file that only its owner can read: a command line shows the token to everybody."""
    if not wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="cadr-label-") as folder:  # of mode 0700
        page = Path(folder) / "page.html"
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">', encoding="utf-8")
        webbrowser.open(page.as_uri())
        yield


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def _whole(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} should be a number.")
    return value


def _word(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} should be a word.")
    return value
