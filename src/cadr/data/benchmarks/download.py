"""Getting a benchmark from its official address, resumable and plain about having no network; and verifying it."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from cadr.data.benchmarks import data_root, find, open_place
from cadr.data.benchmarks.container import BLOCK, ChecksumError
from cadr.data.benchmarks.registry import KNOWN, Download, Place, file_md5, verify_file
from cadr.errors import DataError

Progress = Callable[[str, int, int | None], None]  # file name, bytes so far, bytes in all where the server says

ATTEMPTS = 5
TIMEOUT = 30.0  # seconds without a byte


class DownloadError(DataError):
    """A file could not be had."""


class _BrokenError(Exception):
    """The connection ended before the file did."""


def get(name: str, root: str | Path | None, progress: Progress) -> list[Path]:
    """Download what a benchmark consists of, unless it is there; the paths of its files."""
    known = KNOWN[name]
    if not known.downloads:
        what = (
            "is part of scikit-learn and always there"
            if name == "digits"
            else f"has no official download: {known.page}"
        )
        raise DownloadError(f"{name} {what}")
    return [_get(download, data_root(root), progress) for download in known.downloads]


def _get(download: Download, root: Path, progress: Progress) -> Path:
    path = root / download.path
    if path.exists():
        verify_file(path, download.md5)
        return path
    part = path.with_name(path.name + ".part")
    try:
        _fetch(download.url, part, progress)
    except (_BrokenError, OSError, http.client.HTTPException) as error:
        raise DownloadError(_advice(download, path, part, error)) from error
    got = file_md5(part)
    if got != download.md5:
        part.unlink()
        raise ChecksumError(
            f"what {download.url} sent is not the published file (MD5 {got}, expected {download.md5}); it was deleted"
        )
    part.replace(path)
    return path


def _fetch(url: str, part: Path, progress: Progress) -> None:
    """Read into `part`, going on where it ends; again after a break, as long as that brings something."""
    for attempt in range(ATTEMPTS):
        before = part.stat().st_size if part.exists() else 0
        try:
            _fetch_once(url, part, before, progress)
            return
        except urllib.error.HTTPError:
            raise
        except (_BrokenError, OSError, http.client.HTTPException):
            after = part.stat().st_size if part.exists() else 0
            if after <= before or attempt == ATTEMPTS - 1:
                raise


def _fetch_once(url: str, part: Path, start: int, progress: Progress) -> None:
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # there is nothing after what we have
            return
        raise
    with response:
        if start and response.status != 206:  # the server sends the file from its beginning
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab" if start else "wb") as file:
            position = start
            progress(part.stem, position, total)
            while block := response.read(BLOCK):
                file.write(block)
                position += len(block)
                progress(part.stem, position, total)
    if total is not None and position < total:
        raise _BrokenError(f"it ended after {position:,} of {total:,} bytes")


def _advice(download: Download, path: Path, part: Path, error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    if part.exists() and part.stat().st_size:
        return f"the download of {download.url} broke off ({reason}); the same command goes on where it stopped"
    return (
        f"cannot reach {download.url} ({reason}); without a network, download it elsewhere "
        f"and put it at {path}, or point --root or CADR_DATA to a folder that has it"
    )


Status = Literal["embedded", "verified", "readable", "damaged", "not there"]


class Finding(NamedTuple):
    name: str
    status: Status  # "readable": well-formed, but no checksum is published for it
    path: Path | None
    remark: str


def verify(name: str, root: str | Path | None = None) -> list[Finding]:
    """One finding for every form of the benchmark that is there."""
    if name == "digits":
        return [Finding(name, "embedded", None, "part of scikit-learn")]
    places = find(name, root)
    if not places:
        return [
            Finding(name, "not there", None, f"cadr data get {name}" if KNOWN[name].downloads else KNOWN[name].page)
        ]
    return [_verify(name, place) for place in places]


def _verify(name: str, place: Place) -> Finding:
    by_contents = place.form.by_contents
    published = place.form.md5 is not None or len(place.md5) == len(place.form.files) > 0
    try:
        if by_contents or not published:
            open_place(name, place)
        else:
            place.verify_archive()
            for file, md5 in place.md5.items():
                _verify_member(place.path / file, md5)
    except DataError as error:
        return Finding(name, "damaged", place.path, str(error))
    if by_contents or published:
        return Finding(name, "verified", place.path, "as published")
    return Finding(name, "readable", place.path, "well-formed; no checksum is published for this form")


def _verify_member(path: Path, md5: str) -> None:
    if not path.is_file():
        raise DataError(f"{path} is not there; copy the whole official folder")
    verify_file(path, md5)
