"""Which benchmarks are there, and whether they are what was published."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from cadr.data.benchmarks import find, open_place
from cadr.data.benchmarks.registry import KNOWN, Place, verify_file
from cadr.errors import DataError

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
    by_contents = KNOWN[name].by_contents
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
