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
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.fuzz_damage import CANARY, damage
from benchmarks.fuzz_files import KINDS, make_good

os.environ.setdefault("OMP_NUM_THREADS", "1")

RECORD = Path(__file__).with_suffix(".json")
SECONDS = 60  # of a processor, for one command; the good files take at most a tenth of that
WALL = 20 * SECONDS
MEMORY = 6 << 30  # bytes of address space beyond what the process had
LONGEST = 600  # characters of a sentence


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
    make_good(good, run_apart)
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
    import torch

    torch.set_num_threads(1)
    from cadr.cli.main import COMMANDS

    for name in COMMANDS:
        importlib.import_module(f"cadr.cli.{name.replace('-', '_')}")
    own: tuple[str, ...] = (
        "api",
        "diagnosis.diagnose",
        "report.build",
        "training.loop",
        "inference.predict",
        "inference.export",
    )
    own += ("inference.evaluation", "ensemble.fit", "label.tasks", "embedding.onnx_file")
    others: tuple[str, ...] = (
        "jinja2",
        "sklearn.linear_model",
        "sklearn.ensemble",
        "sklearn.metrics",
        "scipy.optimize",
        "pandas",
    )
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
