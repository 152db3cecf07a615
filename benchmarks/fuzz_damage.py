"""What fuzz.py does to a file: bytes and words changed, archives, headers and pickles that say something else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CANARY = "executed"  # the file that a pickle makes which is loaded


def _flip(data: bytes, rng: random.Random) -> bytes:
    new = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if new:
            new[rng.randrange(len(new))] = rng.choice((0, 255, 10, 34, 44, 45, rng.randrange(256)))
    return bytes(new)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 4, 64, 1024)) :]


def _double(data: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(data) + 1), rng.choice((1, 16, 256))
    return data[:at] + data[at : at + size] * rng.choice((2, 300)) + data[at:]


def _swap(data: bytes, rng: random.Random) -> bytes:
    """A word of 4 or 8 bytes is made absurd: counts, offsets, sizes."""
    size = rng.choice((4, 8))
    at = rng.randrange(max(1, len(data) - size))
    value = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)) & (2 ** (8 * size) - 1)
    return data[:at] + struct.pack("<Q" if size == 8 else "<I", value) + data[at + size :]


_ABSURD = (
    *("9" * 5000, "-1", "0", "1e999", "-1e999", "NaN", "nan", "1e38", "3.4e39", "99999999999999999999", "true", "null"),
    *('""', "[]", "{}", '"\\ud800"', "[" * 3000, "[" * 3000 + "]" * 3000, '{"a":' * 3000, "\x00", "﻿", "\u202e"),
    *("../../../../etc/passwd", "/etc/passwd", "..", "a" * 3000, "=1+1", "'", '"', "\\", "%s%n", "\r", "☃", "\x1b[2J"),
    *("9999-12-31", "0000-00-00", "2025-02-30", "1e-400", "-0", "0x10", "١٢", "1_000", "1,000"),
)
_TOKEN = re.compile(r'"[^"\n]*"|-?\d[\d.eE+-]*|\w+')


def _token(data: bytes, rng: random.Random) -> bytes:
    """A number, name or string in a text is made absurd, or becomes another of the same text."""
    text = data.decode("utf-8", "surrogateescape")
    found = list(_TOKEN.finditer(text))
    if not found:
        return _flip(data, rng)
    for place in sorted(rng.sample(found, min(len(found), rng.choice((1, 1, 2)))), key=lambda m: -m.start()):
        value = rng.choice(_ABSURD) if rng.random() < 0.8 else rng.choice(found)[0]
        text = text[: place.start()] + value + text[place.end() :]
    return text.encode("utf-8", "surrogatepass" if "\ud800" in text else "surrogateescape")


def _line(data: bytes, rng: random.Random) -> bytes:
    """Lines are dropped, doubled or moved."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return _double(data, rng)
    at = rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif kind == 2:
        lines[at] = lines[at] * 500
    else:
        rng.shuffle(lines)
    return b"".join(lines)


def _encode(data: bytes, rng: random.Random) -> bytes:
    """Another encoding, or another file altogether."""
    text = data.decode("utf-8", "replace")
    others = (
        b"",
        b"\n",
        b"\x00" * 4096,
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04",
        b"PAR1",
        b"<?xml",
        b"#!/bin/sh\ntouch x\n",
    )
    return rng.choice((text.encode("utf-16"), b"\xef\xbb\xbf" + data, text.encode("latin-1", "replace"), *others))


class _Hostile:
    """Executes something when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, (f"touch {CANARY}",)


def _pickled(_: bytes, rng: random.Random) -> bytes:
    content = pickle.dumps(_Hostile(), protocol=rng.choice((0, 2, 4)))
    if rng.random() < 0.5:
        return content
    file = io.BytesIO()
    np.save(file, np.array([1, None], dtype=object), allow_pickle=True)
    header = file.getvalue()
    return header[: header.index(b"\n") + 1] + content


def _member(data: bytes, rng: random.Random) -> bytes:
    """A member of an archive is damaged, renamed, or joined by others, and the archive made again."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError):
        return _flip(data, rng)
    name = rng.choice(sorted(members))
    content = members[name]
    kind = rng.randrange(5)
    if kind == 0:
        members[name] = rng.choice((_flip, _cut, _swap, _remove))(content, rng)
    elif kind == 1:
        members[name] = _header(content, rng)
    elif kind == 2:
        members[name] = _pickled(content, rng)
    elif kind == 3:
        del members[name]
        members[rng.choice(("../../escaped.npy", "/tmp/escaped.npy", "x.npy", "a" * 3000, "data.pkl"))] = content
    else:
        members["more.npy"] = b"\x00" * 30_000_000
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    return file.getvalue()


def _header(data: bytes, rng: random.Random) -> bytes:
    """What an array says of itself: its type, its shape, its order."""
    found = re.search(rb"\{'descr'[^}]*\}", data[:512])
    if found is None:
        return _flip(data, rng)
    types = ("<f4", ">f8", "<i8", "|u1", "<U9", "|O", "<M8[ns]", "<m8[Y]", "<c16", "|V7", "<f2", "|S3", "|b1")
    shapes = ("()", "(0,)", "(90,)", "(90, 0)", "(10**9, 10**9)", "(-1,)", "(9" + "9" * 5000 + ",)", "(2, 3, 4, 5, 6)")
    header = f"{{'descr': '{rng.choice(types)}', 'fortran_order': {rng.choice((True, False, 7))}, "
    header += f"'shape': {rng.choice(shapes)}, }}"
    text = header.encode().ljust(len(found[0])) + b"\n"
    return data[:8] + struct.pack("<H", len(text)) + text + data[found.end() + 1 :]


def _rehashed(data: bytes, rng: random.Random, path: Path) -> bytes:
    """A checkpoint's manifest whose hashes are right again, so that what it says is read."""
    if path.name != "manifest.json":
        changed = rng.choice((_flip, _member, _pickled, _cut))(data, rng)
        other = path.with_name("manifest.json")
        manifest = json.loads(other.read_text())
        manifest["files"][path.name] = hashlib.sha256(changed).hexdigest()
        other.write_text(_signed(manifest))
        return changed
    text = json.loads(data)
    for _ in range(rng.choice((1, 3))):
        _spoil(text, rng)
    return _signed(text).encode()


def _signed(manifest: dict[str, Any]) -> str:
    manifest.pop("sha256", None)
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    return json.dumps(manifest)


_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**400,
    1e308,
    float("nan"),
    "",
    "☃",
    "../x",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    "a" * 3000,
)


def _spoil(content: Any, rng: random.Random) -> None:
    """Somewhere in lists and objects a value becomes one of another kind, is lost, or comes twice."""
    places = [
        (holder, key)
        for holder in _holders(content)
        for key in (holder if isinstance(holder, dict) else range(len(holder)))
    ]
    if not places:
        return
    holder, key = rng.choice(places)
    if rng.random() < 0.25:
        del holder[key]
    else:
        holder[key] = rng.choice(_VALUES)


def _holders(content: Any) -> Iterator[Any]:
    if isinstance(content, dict | list):
        yield content
        for value in content.values() if isinstance(content, dict) else content:
            yield from _holders(value)


def _structure(data: bytes, rng: random.Random) -> bytes:
    """JSON, or lines of it, that can be read and says what cannot be."""
    try:
        lines = data.splitlines() if data.count(b"\n{") else [data]
        at = rng.randrange(len(lines))
        content = json.loads(lines[at])
        _spoil(content, rng)
        lines[at] = json.dumps(content).encode()
        return b"\n".join(lines) + b"\n"
    except (ValueError, UnicodeDecodeError):
        return _token(data, rng)


_TEXT = (_token, _token, _token, _structure, _structure, _line, _flip, _cut, _double, _encode, _remove)
_BINARY = (_flip, _flip, _swap, _swap, _cut, _remove, _double, _member, _member, _header, _pickled, _encode)
_TEXTS = (".csv", ".json", ".jsonl", ".toml", ".xml", ".txt", ".md")


def damage(path: Path, rng: random.Random) -> str:
    """Damage the file; returns how."""
    data = path.read_bytes()
    if path.parent.name == "checkpoint" and rng.random() < 0.6:
        path.write_bytes(_rehashed(data, rng, path))
        return "rehashed"
    if rng.random() < 0.02:
        path.unlink()
        rng.choice((path.mkdir, lambda: path.symlink_to(path), lambda: os.mkfifo(path), lambda: None))()
        return "no file"
    how: Callable[[bytes, random.Random], bytes] = rng.choice(_TEXT if path.suffix in _TEXTS else _BINARY)
    path.write_bytes(how(data, rng))
    return how.__name__.strip("_")
