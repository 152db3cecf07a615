"""Damaged and hostile files through every command: `make fuzz`, or `python benchmarks/fuzz.py --files 2000 --seed 1`.

Small good files of every kind are made first: tables, arrays, pictures, labels, exports of annotation tools, splits,
recipes, run folders, checkpoints, an ONNX model. Then one file at a time is damaged (bytes changed, cut or doubled;
numbers, names and nesting in text made absurd; headers and members of archives; pickles that would execute something;
checkpoints with right hashes), and a command reads it in a process of its own. What must hold every time:

- the command succeeds, or says one sentence and exits with status 2: no traceback, no crash, no hang;
- nothing is executed, no connection is opened, no process started;
- nothing is written but in the case's own folder, and what is given to be read is left as it was.

The record `fuzz.json` holds how many of each kind were refused and taken, and all findings. A finding is made again by
`--only NUMBER` with the same seed, which leaves the case's folder and shows what the command said.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

RECORD = Path(__file__).with_suffix(".json")
SECONDS = 60  # of a processor, for one command; the good files take at most a tenth of that
WALL = 20 * SECONDS
MEMORY = 6 << 30  # bytes of address space beyond what the process had
LONGEST = 600  # characters of a sentence
CANARY = "executed"


class Kind(NamedTuple):
    """Files of one kind, and who reads them."""

    damage: str  # which files of the folder are damaged, as a pattern
    commands: tuple[str, ...]


_TABLE = ("data show {f}", "diagnose {f}", "train {f} --out new", "predict run {f} --out p.csv",
          "train {f} --algorithm fixmatch --steps 4 --out new", "predict net {f} --out p.parquet",
          "diagnose {f} --weights-out w.csv")  # fmt: skip
_LABELS = ("data show pictures --labels {f}", "diagnose pictures --labels {f}")
_RUN = ("evaluate net", "predict net t.csv --out p.csv", "report net --out r.html",
        "report net --out r.html --to-label a.csv", "export net --formats safetensors",
        "train t.csv --algorithm fixmatch --steps 20 --out net",
        "export-tasks net --to label-studio --out asked.json")  # fmt: skip
_ENSEMBLE = (*(command.replace("net", "run") for command in _RUN[:5]), "train t.csv --out run")
KINDS = {
    "CSV": Kind("t.csv", _TABLE),
    "Parquet": Kind("t.parquet", _TABLE),
    "npz": Kind("t.npz", (*_TABLE[:3], "predict flat {f} --out p.csv")),
    "npy": Kind("x.npy", ("data show {f} --labels y.csv", "train {f} --labels y.csv --out new")),
    "npy labels": Kind("y.npy", ("data show x.npy --labels {f}", "diagnose x.npy --labels {f}")),
    "picture": Kind(
        "pictures/*.*",
        (
            "data show pictures --labels labels.csv",
            "predict seen pictures --out p.csv",
            "predict seen {f} --out p.csv",
            "report seen --out r.html",
        ),
    ),
    "labels CSV": Kind("labels.csv", (*_LABELS, "predict seen pictures --labels {f} --out p.csv")),
    "Label Studio": Kind("tasks.json", _LABELS),
    "CVAT": Kind("tasks.xml", _LABELS),
    "split": Kind("split.json", ("data show digits --split {f}", "diagnose digits --split {f}")),
    "recipe": Kind(
        "recipe.toml",
        ("train {f}:a --steps 2 --out new", "compare {f}:a --algorithms fixmatch --seeds 1 --steps 2 --out new"),
    ),
    "run folder": Kind("net/*.*", _RUN),
    "ensemble's run folder": Kind("run/*.*", _ENSEMBLE),
    "checkpoint": Kind("net/checkpoint/*", _RUN),
    "ensemble's checkpoint": Kind("run/checkpoint/*", _ENSEMBLE),
    "preprocessing": Kind(
        "preprocessor_config.json", ("embed pictures --labels labels.csv --features m.onnx --out e.npz",)
    ),
    "ONNX model": Kind("m.onnx", ("embed pictures --labels labels.csv --features {f} --out e.npz",)),
}


def make_good(folder: Path) -> None:
    """The undamaged files, made by the program itself where it writes such."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    draw = np.random.default_rng(0)
    truth = draw.integers(0, 3, 90)
    x = (draw.normal(size=(90, 4)) + 3 * np.eye(3, 4)[truth]).astype(np.float32)
    given = np.where(draw.random(90) < np.array([0.6, 0.4, 0.3])[truth], truth, -1)
    names = np.array(["owl", "wren", "jay", ""])[given]
    words, dates = np.array(["red", "blue", "", "a b"])[truth], np.datetime64("2025-01-01") + np.arange(90)
    columns = {"a": x[:, 0], "b c": x[:, 1], "hue": words, "day": dates.astype(str), "label": names}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    nested = pa.array([str(name) or None for name in names])
    pq.write_table(pa.table({**columns, "day": pa.array(dates.astype("datetime64[us]")), "label": nested}),
                   folder / "t.parquet")  # fmt: skip
    np.savez(folder / "t.npz", x=x, y=given)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", given)
    (folder / "y.csv").write_text("row,label\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names) if n))
    (folder / "pictures").mkdir()
    for i in range(24):
        pixels = np.clip(draw.normal(60 + 70 * truth[i], 20, (12, 12, 3)), 0, 255).astype(np.uint8)
        suffix = ("png", "jpg", "gif", "bmp", "tif", "webp")[i % 6]
        Image.fromarray(pixels).save(folder / "pictures" / f"p{i:02}.{suffix}")
    files = sorted(path.name for path in (folder / "pictures").iterdir())
    said = [(file, str(["owl", "wren", "jay"][truth[i]])) for i, file in enumerate(files) if i % 3]
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"{file},{name}\n" for file, name in said))
    tasks = [{"id": i, "data": {"image": f"/data/local-files/?d=pictures/{file}"}, "annotations": [{"result": [
        {"type": "choices", "from_name": "label", "to_name": "image", "value": {"choices": [name]}}]}]}
        for i, (file, name) in enumerate(said)]  # fmt: skip
    (folder / "tasks.json").write_text(json.dumps(tasks))
    images = "".join(f'<image id="{i}" name="{file}" width="12" height="12"><tag label="{name}" source="manual"></tag>'
                     "</image>" for i, (file, name) in enumerate(said))  # fmt: skip
    (folder / "tasks.xml").write_text(f"<annotations><version>1.1</version>{images}</annotations>")
    (folder / "recipe.toml").write_text(
        'title = "t"\n[settings]\ns = { data = "digits", protocol = "longtail", n_max = 20, gamma = 5.0, batch = 8 }\n'
        '[rows]\na = { setting = "s", algorithm = "fixmatch" }\n'
    )
    _onnx(folder / "m.onnx")
    size = {"do_resize": True, "size": {"height": 12, "width": 12}, "do_normalize": True}
    scale = {"do_rescale": True, "rescale_factor": 1 / 255, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(size | scale))
    for command in (
        "data split digits --protocol longtail --n-max 20 --gamma 5 --out split.json",
        "train t.csv --out run",
        "train t.csv --algorithm fixmatch --steps 20 --out net",
        "train t.npz --out flat",
        "train pictures --labels labels.csv --algorithm fixmatch --steps 4 --batch 4 --ratio 1 --model mlp --out seen",
    ):
        status, said_, _ = run_apart(command.split(), folder)
        if status != 0:
            raise SystemExit(f"cadr {command} fails on good files: {said_}")


def check_good(good: Path, place: Path) -> None:
    """Every command takes the good files: what is refused later is refused for its damage."""
    failed = []
    for kind in KINDS.values():
        for command in kind.commands:
            folder = place / "case"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(good, folder)
            file = str(next(p for p in sorted(folder.glob(kind.damage)) if p.is_file()).relative_to(folder))
            status, said, _ = run_apart(command.replace("{f}", file).split(), folder, watch=True)
            broken = place / "broken"
            wrong = broken.read_text() if broken.exists() else ""
            if status != 0 or wrong:
                failed.append(f"cadr {command.replace('{f}', file)} fails on good files: {said}{wrong}")
    if failed:
        raise SystemExit("\n".join(failed))


def _onnx(path: Path) -> None:
    """A model of two channels' means, so that its features differ between pictures."""
    from onnx import TensorProto, helper, save

    shape = ["n", 3, 12, 12]
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["m"]), helper.make_node("Flatten", ["m"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))


# What damage is done, each to the bytes of one file.


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


_VALUES = (None, True, -1, 0, 10**400, 1e308, float("nan"), "", "☃", "../x", [], {}, [[]], [None], {"a": 1}, "a" * 3000)


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


# A command in a process that is thrown away, and what it may not do there.

_FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect",
              "socket.getaddrinfo", "pty.spawn")  # fmt: skip
_LIBRARIES = (str(Path(np.__file__).resolve().parents[1]), sys.base_prefix, "lib")  # that installed packages load
_WRITES = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
)


def _watch(folder: Path) -> None:
    """Note in `broken` whatever must not happen; the hook stays for the life of the process."""
    broken = folder.parent / "broken"
    inside = str(folder)

    def note(words: str) -> None:
        with contextlib.suppress(OSError):
            number = os.open(broken, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(number, (words + "\n").encode("utf-8", "replace"))
            os.close(number)

    def outside(path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return False
        place = os.path.realpath(os.fsdecode(path))
        return not (place.startswith((inside, "/dev/", "/proc/self")) or place == str(broken))

    def hook(event: str, values: tuple[Any, ...]) -> None:
        library = event == "ctypes.dlopen" and values[0] and not os.path.realpath(values[0]).startswith(_LIBRARIES)
        ours = event == "subprocess.Popen" and values[0] == "git"  # a run notes the commit of the program
        if (event in _FORBIDDEN and not ours) or library:
            note(f"{event} {values!r}"[:300])
        elif event == "open":
            path, _, flags = values
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND) and outside(path):
                note(f"wrote {path!r}")
        elif event in _WRITES and any(outside(p) for p in values[:2] if isinstance(p, str | bytes | os.PathLike)):
            note(f"{event} {values!r}"[:300])

    sys.addaudithook(hook)


def run_apart(words: list[str], folder: Path, watch: bool = False) -> tuple[int, str, float]:
    """Exit status (negative: the signal), what was said on standard error, and seconds of a processor."""
    log = folder.parent / "said"
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _carry_out(words, folder, log, watch)
    while time.monotonic() - started < WALL:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace"), usage.ru_utime + usage.ru_stime


def _carry_out(words: list[str], folder: Path, log: Path, watch: bool) -> None:
    code = 70
    try:
        said, null = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), os.open(os.devnull, os.O_RDWR)
        for number, stream in ((0, null), (1, null), (2, said)):
            os.dup2(stream, number)
        os.chdir(folder)
        for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
            os.environ[name] = str(folder)
        tempfile.tempdir = None
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        if watch:
            _watch(folder)
        from cadr.cli.main import main

        code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 70
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def judged(status: int, said: str) -> str:
    """What is wrong with how a command ended; nothing, as a rule."""
    if "Traceback (most recent call last)" in said:
        last = [line for line in said.splitlines() if line.strip()][-1]
        return f"traceback: {last[:200]}"
    if status < 0:
        hung = status in (-signal.SIGXCPU, -signal.SIGKILL)
        return "hang" if hung else f"killed by {signal.Signals(-status).name}"
    if status not in (0, 2):
        return f"exit status {status}"
    if status == 0:
        return ""
    sentences = [line for line in said.splitlines() if line.startswith("cadr")]
    if len(sentences) != 1:
        return f"{len(sentences)} sentences"
    return "a sentence too long to be read" if len(sentences[0]) > LONGEST else ""


def changed_input(before: dict[str, bytes], after: dict[str, bytes], words: list[str]) -> str:
    """A file that was given to be read and is another one now; a run that is trained on may change."""
    trains = words[words.index("--out") + 1] if words[0] == "train" else None
    export = f"{words[1]}/export" if words[0] == "export" else None
    for name, digest in before.items():
        if trains is not None and name.startswith(f"{trains}/"):
            continue
        if export is not None and name.startswith(export):
            continue
        if after.get(name) != digest:
            return f"changed {name}"
    return ""


def one(number: int, seed: int, good: Path, place: Path) -> tuple[str, str, list[str], int, str, str, float]:
    """One damaged file: its kind, how it was damaged, the command, its status, what it said, what is wrong, seconds."""
    rng = random.Random(f"{seed} {number}")
    kind = list(KINDS)[number % len(KINDS)]
    folder = place / "case"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(good, folder)
    target = rng.choice([p for p in sorted(folder.glob(KINDS[kind].damage)) if p.is_file()])
    how = damage(target, rng)
    file = str(target.relative_to(folder))
    words = rng.choice(KINDS[kind].commands).replace("{f}", file).split()
    before = _contents(folder)
    status, said, seconds = run_apart(words, folder, watch=True)
    wrong = judged(status, said) or changed_input(before, _contents(folder), words)
    if (broken := place / "broken").exists():
        wrong = broken.read_text().splitlines()[0]
    if list(place.rglob(CANARY)):
        wrong = "a file's content was executed"
    return kind, f"{how} {file}", words, status, said, wrong, seconds


def fuzz(files: int, seed: int, minutes: float, only: int | None) -> dict[str, Any]:
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    good = place / "good"
    good.mkdir()
    _import_all()
    make_good(good)
    if only is not None:
        kind, how, words, status, said, wrong, seconds = one(only, seed, good, place / "one")
        print(f"{kind}, {how}\ncadr {' '.join(words)}\nexit status {status}, {seconds:.1f} s\n{said}\n{wrong}\n{place}")
        return {}
    check_good(good, place / "one")
    ends: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    commands: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    slowest, begun = 0.0, time.monotonic()
    for number in range(files):
        if time.monotonic() - begun > 60 * minutes:
            break
        kind, how, words, status, said, wrong, seconds = one(number, seed, good, place / "one")
        ends[kind]["finding" if wrong else "refused" if status == 2 else "taken"] += 1
        commands[words[0]] += 1
        slowest = max(slowest, seconds)
        if wrong:
            findings.append({"number": number, "kind": kind, "damage": how, "command": " ".join(words), "what": wrong})
            print(json.dumps(findings[-1], ensure_ascii=False), flush=True)
            print("\n".join(said.splitlines()[-12:]), flush=True)
        if number % 100 == 99:
            print(f"{number + 1} of {files}", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    return {
        "files": sum(count.total() for count in ends.values()),
        "seed": seed,
        "refused": sum(count["refused"] for count in ends.values()),
        "taken": sum(count["taken"] for count in ends.values()),
        "slowest_command_cpu_seconds": round(slowest, 1),
        "kinds": {kind: dict(sorted(count.items())) for kind, count in ends.items()},
        "commands": dict(sorted(commands.items())),
        "findings": findings,
    }


def _import_all() -> None:
    """What commands import, once for all processes; without it every one would take seconds to begin."""
    import importlib

    import torch

    torch.set_num_threads(1)
    from cadr.cli.main import COMMANDS

    for name in COMMANDS:
        importlib.import_module(f"cadr.cli.{name.replace('-', '_')}")
    own = ("api", "diagnosis.diagnose", "report.build", "training.loop", "inference.predict", "inference.export")
    own += ("inference.evaluation", "ensemble.fit", "label.tasks", "embedding.onnx_file")
    others = ("jinja2", "sklearn.linear_model", "sklearn.ensemble", "sklearn.metrics", "scipy.optimize", "pandas")
    others += ("pyarrow.parquet", "safetensors.torch", "onnxruntime")
    for name in (*(f"cadr.{name}" for name in own), *others):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one file again, with all that the command says")
    parser.add_argument("--record", type=Path, help=f"where figures are written, such as {RECORD.name}")
    arguments = parser.parse_args()
    found = fuzz(arguments.files, arguments.seed, arguments.minutes, arguments.only)
    if arguments.only is not None:
        return
    print(json.dumps({name: value for name, value in found.items() if name != "findings"}, indent=1))
    if arguments.record is not None:
        arguments.record.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(bool(found["findings"]))


if __name__ == "__main__":
    main()
