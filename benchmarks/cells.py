"""What the tables of results share: a run's record, the cell of a row and length, and how figures are written."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EMPTY = "·"

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What the seeds of one row and length say together."""

    records: tuple[Record, ...]

    @property
    def accuracies(self) -> list[float]:
        return [r["median_10"] for r in self.records]

    def text(self, gm: bool = False) -> str:
        figure = mean_and_sd(self.accuracies)
        if gm:
            figure += " / GM " + mean_and_sd([r["gm"] for r in self.records])
        return f"**{figure}** (n = {len(self.records)}, {self._others()}{self.about()})"

    def _others(self) -> str:
        """Which seeds these are, where they are not the first ones: others drew labels that are easier or harder."""
        seeds = [r["seed"] for r in self.records]
        if seeds == list(range(1, len(seeds) + 1)):
            return ""
        return f"seed{'s' * (len(seeds) > 1)} {' and '.join(map(str, seeds))}, "

    def about(self) -> str:
        return f"{power(self.records[0]['steps'])} steps, {minutes(self.records)}, {hardware(self.records)}"


Cells = dict[tuple[str, int], Cell]  # by row and steps


def read_records(folder: Path) -> list[Record]:
    """Every run's record (other benchmarks keep theirs in the same folder: a run's has a curve)."""
    records = []
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "curve" in record:
            records.append(record | {"file": path.name})
    return records


def fill(records: Iterable[Record]) -> Cells:
    """(row, steps) -> cell, from the records of plain rows, one per seed."""
    seeds: dict[tuple[str, int], dict[int, Record]] = defaultdict(dict)
    for record in records:
        if plain(record):
            seeds[record["row"], record["steps"]][record["seed"]] = record
    return {key: Cell(tuple(by_seed[s] for s in sorted(by_seed))) for key, by_seed in seeds.items()}


def plain(record: Record) -> bool:
    return bool(record.get("row")) and not record.get("overrides")


def mean_and_sd(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def power(steps: int) -> str:
    exponent = steps.bit_length() - 1
    return f"2^{exponent}" if steps == 1 << exponent and exponent >= 10 else f"{steps:,}"


def minutes(records: Sequence[Record]) -> str:
    """Mean minutes a run: of those that had the hardware to themselves ("alone"), if some had and some had not."""
    alone = [r for r in records if r.get("abreast", 1) == 1]
    mean = statistics.fmean(r["seconds"] for r in alone or records) / 60
    if not alone:
        return f"{mean:.1f} min, {max(r['abreast'] for r in records)} abreast"
    return f"{mean:.1f} min" if len(alone) == len(records) else f"{mean:.1f} min alone"


def hardware(records: Sequence[Record]) -> str:
    return " or ".join(sorted({r["device"] for r in records}))


def figure(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.2f}"


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
