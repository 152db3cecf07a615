"""Who may do what: nobody without the token, no other site, and nothing that is not asked for."""

import http.client
import json

import pytest

from cadr.label.server import Server, opened_in_browser
from cadr.label.session import Session
from tests.label.runs import copied, served
from tests.report.own_runs import read_csv


@pytest.fixture
def server(squares, tmp_path):
    with served(Session(copied(squares, tmp_path), device="cpu")) as server:
        yield server


def ask(server, path, method="GET", body=None, token=None, **headers):
    """Status, headers and content; keyword headers replace those of the page, and None leaves them out."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    given = {"Host": f"127.0.0.1:{server.server_port}"}
    if method == "POST":
        given |= {"Origin": server.address[:-1].rpartition("/")[0], "Content-Type": "application/json"}
        given |= {"Sec-Fetch-Site": "same-origin"}
        body = json.dumps(body) if not isinstance(body, bytes) else body
        given |= {"Content-Length": str(len(body))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, f"/{server.token if token is None else token}/{path}", skip_host=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body.encode() if isinstance(body, str) else body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.headers), content


def labelled(server):
    return len(read_csv(server.session.answers.labels))


def post(server, path="label", **more):
    state = server.session.state()
    return ask(server, path, "POST", {"row": state["example"]["row"], "label": "dark"}, **more)


def test_the_page_and_all_it_needs(server):
    for path, kind in [
        ("", "text/html; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("state", "application/json; charset=utf-8"),
        (server.session.state()["example"]["picture"], "image/png"),
    ]:
        status, headers, content = ask(server, path)
        assert (status, headers["Content-Type"]) == (200, kind)
        assert len(content) > 50
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
    page = ask(server, "")[2].decode()
    assert "<script src=" in page
    assert page.count("<script") == 1  # none within the page
    assert " on" + "click" not in page
    assert "://" not in page + ask(server, "page.js")[2].decode() + ask(server, "style.css")[2].decode()


def test_an_answer(server):
    before = labelled(server)
    status, _, content = post(server)
    assert status == 200
    assert json.loads(content)["labelled"] == 1
    assert labelled(server) == before + 1


@pytest.mark.parametrize("token", ["", "state", "x" * 32, "%C3%A9", "%00", "../.."])
def test_nobody_without_the_token(server, token):
    before = labelled(server)
    assert ask(server, "", token=token)[0] == 404
    assert ask(server, "state", token=token)[0] == 404
    assert post(server, token=token)[0] == 404
    assert labelled(server) == before


@pytest.mark.parametrize(
    "host", [None, "", "127.0.0.1", "evil.example", "evil.example:{port}", "127.0.0.1:1", "[::1]:{port}"]
)
def test_no_other_name_for_this_machine(server, host):
    """A site can give its own name to 127.0.0.1, and its pages then count as of the same origin."""
    before = labelled(server)
    host = None if host is None else host.format(port=server.server_port)
    assert ask(server, "", Host=host)[0] == 421
    assert post(server, Host=host)[0] == 421
    assert labelled(server) == before
    assert ask(server, "", Host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none", "Origin": None},
        {"Content_Type": "text/plain"},  # what a form of another site can send without being asked
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": None},
    ],
)
def test_no_other_site(server, headers):
    before = labelled(server)
    for path in ("label", "skip", "cannot-tell", "undo", "train"):
        assert post(server, path, **headers)[0] == 403
    assert labelled(server) == before
    assert not server.session.trainer.running


def test_reading_changes_nothing(server):
    before = labelled(server)
    row = server.session.state()["example"]["row"]
    for path in (f"label?row={row}&label=dark", "undo", "train", "skip"):
        assert ask(server, path)[0] == 404
    assert labelled(server) == before


@pytest.mark.parametrize(
    "path",
    [
        *("../../config.toml", "page.js/..", "index.html", "%2e%2e/state", "//state"),
        *("picture/0", "picture/-1", "picture/x", "picture/99999999999999999999", "picture/" + "9" * 5000),
    ],
)
def test_nothing_else_is_to_be_had(server, path):
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b'{"row": "0", "label": "dark"}', 400),
        (b'{"row": true, "label": "dark"}', 400),
        (b'{"row": 1e400, "label": "dark"}', 400),
        (b'{"label": "dark"}', 400),
        (b"{" * 9000, 400),
        (b"x" * 20_000, 413),
    ],
)
def test_a_request_that_is_none(server, body, status):
    before = labelled(server)
    assert ask(server, "label", "POST", body)[0] == status
    assert labelled(server) == before


def test_of_no_length_or_an_impossible_one(server):
    for length in (None, "-1", "x", "9" * 30):
        assert post(server, Content_Length=length)[0] == 413


def test_what_cannot_be_written_is_said(server):
    row = server.session.state()["example"]["row"]
    status, _, content = ask(server, "label", "POST", {"row": row, "label": "grey"})
    assert status == 409
    assert json.loads(content) == {"problem": "there is no class 'grey'"}


def test_it_listens_to_this_machine_alone(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_every_server_has_another_token(server):
    other = Server(server.session)
    other.server_close()
    assert other.token != server.token
    assert len(server.token) >= 32  # 192 bits


def test_the_token_is_on_no_command_line_and_in_no_file_for_others(monkeypatch):
    """What a browser is started with, everybody on the machine can see."""
    import webbrowser
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    opened = []

    def start(address):
        path = Path(unquote(urlsplit(address).path))
        opened.append((address, path.read_text(encoding="utf-8"), path.parent.stat().st_mode & 0o777))
        return True

    monkeypatch.setattr(webbrowser, "open", start)
    with opened_in_browser("http://127.0.0.1:1/secret/"):
        (address, page, mode) = opened[0]
    assert "secret" not in address
    assert 'url=http://127.0.0.1:1/secret/"' in page
    assert mode == 0o700
    with opened_in_browser("http://127.0.0.1:1/secret/", wanted=False):
        assert len(opened) == 1
