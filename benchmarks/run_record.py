"""What is kept of a finished run: its result in one flat file, and what became of it on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadr.training.run_folder import read_records
from cadr.utils.files import atomic_write

if TYPE_CHECKING:
    from benchmarks.reproduce import Job

_ABREAST = ".abreast"  # hidden, because `cadr train` begins a run in an empty folder only


def path_of(name: str, records: Path) -> Path:
    return records / f"{name}.json"


def remember_abreast(out: Path, together: int) -> None:
    """The most that ever ran abreast: a run's seconds add up over commands, and one of them may have shared the GPU."""
    if together > _abreast(out):
        with atomic_write(out / _ABREAST) as new:
            new.write_text(str(together), encoding="utf-8")


def _abreast(out: Path) -> int:
    path = out / _ABREAST
    return int(path.read_text(encoding="utf-8")) if path.exists() else 1


def write_record(job: Job, out: Path, records: Path, wall: float | None = None) -> Path:
    """The run's flat result, with the recipe's row, what was changed, and the last confusion matrix.

    `wall` is how many seconds its process lived, start-up included, if it was one process. By step, also which names
    were exchanged, and how many labels of each class a generation adopted, with the share of right ones in percent.
    """
    record = json.loads((out / "result.json").read_text(encoding="utf-8"))
    record |= {"row": job.row, "overrides": job.overrides, "abreast": _abreast(out), "confusion": None}
    record |= {"minutes": None if job.steps else job.minutes, "wall_seconds": None if wall is None else round(wall, 1)}
    record |= {"renamed": [], "generations": []}
    for said in read_records(out / "metrics.jsonl"):
        if said["kind"] == "evaluation":
            record["confusion"] = said["confusion"]
        elif said["kind"] == "renaming":
            record["renamed"].append([said["step"], said["exchanged"]])
        elif said["kind"] == "generation":
            record["generations"].append([said["step"], said["adopted"], said["precision"]])
    path = path_of(job.name, records)
    with atomic_write(path) as new:
        new.write_text(_one_key_per_line(record), encoding="utf-8")
    return path


def _one_key_per_line(record: dict[str, Any]) -> str:
    lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
