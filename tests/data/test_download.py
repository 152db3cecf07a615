"""Downloads from a server of our own that breaks off, resumes, refuses and lies."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cadr.data.benchmarks import download
from cadr.data.benchmarks.container import ChecksumError
from cadr.data.benchmarks.download import DownloadError
from cadr.data.benchmarks.registry import KNOWN, Download, Known

CONTENT = bytes(range(256)) * 20_000


class Server(ThreadingHTTPServer):
    """Serves CONTENT; `cut` ends the first so many answers after a third, `ranges` says whether it can resume."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cut = 0
        self.ranges = True
        self.starts: list[int] = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/set.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        self.server.starts.append(start)
        if start >= len(CONTENT):
            self.send_error(416)
            return
        body = CONTENT[start:]
        self.send_response(206 if asked and self.server.ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cut > 0:
            self.server.cut -= 1
            body = body[: len(CONTENT) // 3]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        md5 = hashlib.md5(CONTENT).hexdigest()
        monkeypatch.setitem(KNOWN, "cifar10", Known(forms=(), downloads=(Download(running.url, md5, "folder"),)))
        yield running
        running.shutdown()
        thread.join()


def quiet(*_):
    pass


def test_downloads_verifies_and_reports(server, tmp_path):
    seen = []
    (path,) = download.get("cifar10", tmp_path, lambda *report: seen.append(report))
    assert path == tmp_path / "folder" / "set.bin"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["set.bin"]
    assert seen[0] == ("set.bin", 0, len(CONTENT))
    assert seen[-1] == ("set.bin", len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    download.get("cifar10", tmp_path, quiet)
    download.get("cifar10", tmp_path, quiet)
    assert server.starts == [0]


def test_goes_on_after_a_break(server, tmp_path):
    server.cut = 2
    (path,) = download.get("cifar10", tmp_path, quiet)
    assert path.read_bytes() == CONTENT
    assert server.starts == [0, len(CONTENT) // 3, 2 * (len(CONTENT) // 3)]


def test_goes_on_in_another_run(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.cut = 1
    with pytest.raises(DownloadError, match=r"broke off .*1,706,666 of 5,120,000 bytes.*same command goes on"):
        download.get("cifar10", tmp_path, quiet)
    (path,) = download.get("cifar10", tmp_path, quiet)
    assert path.read_bytes() == CONTENT
    assert server.starts == [0, len(CONTENT) // 3]


def test_starts_over_where_the_server_cannot_resume(server, tmp_path):
    server.ranges = False
    server.cut = 1
    (path,) = download.get("cifar10", tmp_path, quiet)
    assert path.read_bytes() == CONTENT


def test_a_finished_part_is_recognised(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "set.bin.part").write_bytes(CONTENT)
    (path,) = download.get("cifar10", tmp_path, quiet)
    assert path.read_bytes() == CONTENT
    assert server.starts == [len(CONTENT)]


def test_the_wrong_file_is_not_kept(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "set.bin.part").write_bytes(b"something else")
    with pytest.raises(ChecksumError, match=r"not the published file .* it was deleted"):
        download.get("cifar10", tmp_path, quiet)
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_damaged_file_is_reported_not_overwritten(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "set.bin").write_bytes(b"mine")
    with pytest.raises(ChecksumError, match=r"set\.bin is not the published file"):
        download.get("cifar10", tmp_path, quiet)
    assert (tmp_path / "folder" / "set.bin").read_bytes() == b"mine"


def test_no_network_says_what_to_do(tmp_path, monkeypatch):
    nowhere = Known(forms=(), downloads=(Download("http://no-such-host.invalid/set.bin", "0" * 32),))
    monkeypatch.setitem(KNOWN, "cifar10", nowhere)
    with pytest.raises(DownloadError, match=r"cannot reach http://no-such-host.*put it at .*set\.bin.*CADR_DATA"):
        download.get("cifar10", tmp_path / "new", quiet)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("name", "words"), [("digits", "always there"), ("mini_imagenet", "no official download")])
def test_what_cannot_be_had(name, words, tmp_path):
    with pytest.raises(DownloadError, match=words):
        download.get(name, tmp_path, quiet)
