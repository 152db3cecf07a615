"""What is kept for the next process is what was made, or is made again."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cadr.kernels.nvrtc import cached


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "cadr"


def never():
    raise AssertionError("made again")


def test_it_is_made_once(folder):
    assert cached("a", lambda: b"one\0two\n") == b"one\0two\n"
    assert cached("a", never) == b"one\0two\n"
    assert cached("b", lambda: b"") == b""
    assert cached("b", never) == b""
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b"]
    assert folder.stat().st_mode & 0o077 == 0  # nobody else may put code there


def test_another_process_finds_it(folder):
    code = "from cadr.kernels.nvrtc import cached; cached('a', lambda: b'from the first')"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert cached("a", never) == b"from the first"


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + b"x" + b[41:], lambda b: b[:31]]
)
def test_a_damaged_file_is_made_again(folder, damage):
    cached("a", lambda: bytes(range(100)))
    (folder / "a").write_bytes(damage((folder / "a").read_bytes()))
    assert cached("a", lambda: b"new") == b"new"
    assert cached("a", never) == b"new"


def test_without_a_folder_to_write_to_it_is_made_each_time(folder):
    folder.write_text("a file where the folder should be")
    assert cached("a", lambda: b"1") == b"1"
    assert cached("a", lambda: b"2") == b"2"


def test_a_user_without_a_home_has_it_made_each_time(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert cached("a", lambda: b"1") == b"1"
    assert cached("a", lambda: b"2") == b"2"


def test_what_cannot_be_made_leaves_nothing(folder):
    with pytest.raises(ZeroDivisionError):
        cached("a", lambda: b"%d" % (1 // 0))
    assert not folder.exists()


def test_many_at_once_never_read_half_of_a_file(folder):
    content = os.urandom(200_000)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: cached("a", lambda: content), range(64))) == {content}
    assert list(folder.iterdir()) == [folder / "a"]


@pytest.mark.parametrize("base", ["", "not/absolute"])
def test_it_is_in_the_users_cache_where_nothing_else_is_said(tmp_path, monkeypatch, base):
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    monkeypatch.setenv("HOME", str(tmp_path))
    cached("a", lambda: b"1")
    assert list(Path(tmp_path, ".cache", "cadr").iterdir()) == [tmp_path / ".cache" / "cadr" / "a"]
