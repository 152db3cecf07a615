"""Rebuild benchmarks/RESULTS.md from benchmarks/records/, rivals.json and recipes/, and from nothing else.

    python benchmarks/results.py

A record fills the cell of its recipe row when nothing but seed and length was changed; every other record is listed as
a variant. Runs of different lengths stand in different tables. docs/methods.md shows some of the same numbers, and is
written anew with it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadr.cli.recipe_file import Row, read_rows

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "recipes" / "hu2022.toml"
SUCCESSORS = ROOT / "recipes" / "successors.toml"
RECORDS = ROOT / "benchmarks" / "records"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
FIGURE = ROOT / "benchmarks" / "figure3.svg"
RIVALS = ROOT / "benchmarks" / "rivals.json"
ELSEWHERE = ROOT / "benchmarks" / "elsewhere.toml"
HEADLINE, BASELINE = "cifar10-gamma50-cadr", "cifar10-gamma50-fixmatch"
COMPARED = 2**15  # steps at which all methods meet
EMPTY = "·"

Record = dict[str, Any]

TABLES = {
    "1": "Table 1: against other methods",
    "2": "Table 2: the parts alone and together",
    "3": "Table 3: more baselines",
    "4": "Table 4: labels missing completely at random",
    "mu": "Ablation: momentum μ of CAP's class marginal",
    "beta": "Ablation: exponent β of CAI's threshold",
    "4a": "Figure 4a: unlabelled data imbalanced too",
    "4b": "Figure 4b: random class rates",
}
WITH_GM = ("4a", "4b")  # the paper shows the geometric mean there
METHODS = {
    "pi_model": "Π-model",
    "mixmatch": "MixMatch",
    "remixmatch": "ReMixMatch",
    "fixmatch": "FixMatch",
    "crest": "+ CReST",
    "darp": "+ DARP",
    "reweighting": "+ re-weighting",
    "resampling": "+ re-sampling",
    "logit_adjustment": "+ LA loss",
    "dash": "+ DASH",
    "cap": "+ CAP",
    "cai": "+ CAI",
    "cap_cai": "+ CAP + CAI",
    "cadr": "+ CADR",
}
DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "mini_imagenet": "mini-ImageNet"}


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
        return f"**{figure}** (n = {len(self.records)}, {self.about()})"

    def about(self) -> str:
        return f"{power(self.records[0]['steps'])} steps, {minutes(self.records)}, {hardware(self.records)}"


def read_records(folder: Path) -> list[Record]:
    """Every run's record (other benchmarks keep theirs in the same folder: a run's has a curve)."""
    records = []
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "curve" in record:
            records.append(record | {"file": path.name})
    return records


def fill(records: Iterable[Record]) -> dict[tuple[str, int], Cell]:
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
    mean = statistics.fmean(r["seconds"] for r in records) / 60
    abreast = max(r.get("abreast", 1) for r in records)
    return f"{mean:.1f} min" if abreast == 1 else f"{mean:.1f} min beside {abreast - 1} more"


def hardware(records: Sequence[Record]) -> str:
    return " or ".join(sorted({r["device"] for r in records}))


def column(row: Row) -> str:
    """The header of a setting: its data set and what varies within a table."""
    values = row.values
    if values["protocol"] == "mcar":
        what = f"{values['n']:,} labels"
    elif values["protocol"] == "random_rates":
        what = f"{values['n']:,} labels at random rates"
    elif "gamma_unlabelled" in values:
        ratio = values["gamma_unlabelled"]
        what = f"γ_u = {ratio:g}" if ratio >= 1 else f"γ_u = 1/{1 / ratio:g}"
    else:
        what = f"γ = {values['gamma']:g}"
    return f"{DATASETS.get(values['data'], values['data'])}, {what}"


def label(row: Row, table: str) -> str:
    if table == "mu":
        return f"μ = {row.values['momentum']:g}"
    if table == "beta":
        counted = row.values.get("threshold_prior") == "label"
        return f"β = {row.values['beta']:g}" + (", rarity by the labels' counts" if counted else "")
    name = METHODS.get(row.values["algorithm"], row.values["algorithm"])
    return f"{name}, told the class sizes" if "target_prior" in row.values else name


def _to_show(table: str, rows: Sequence[Row], cells: dict[tuple[str, int], Cell]) -> bool:
    """CIFAR-10 is shown also where it is still empty; other data once they have a record."""
    reached = {name for name, _ in cells}
    return any(table in row.tables and (row.values["data"] == "cifar10" or row.name in reached) for row in rows)


def section(table: str, rows: Sequence[Row], cells: dict[tuple[str, int], Cell]) -> str:
    """One of the paper's tables: first at its own length, then once for every other length that was run."""
    rows = [row for row in rows if table in row.tables]
    lengths = sorted({steps for name, steps in cells if name in {row.name for row in rows}}, reverse=True)
    full = max(row.values["steps"] for row in rows)
    parts = [f"## {TABLES[table]}"]
    for steps in [full, *(s for s in lengths if s != full)]:
        parts.append(_grid(table, rows, cells, steps, full))
    return "\n\n".join(parts)


def _grid(table: str, rows: Sequence[Row], cells: dict[tuple[str, int], Cell], steps: int, full: int) -> str:
    filled = {row.setting for row in rows if (row.name, steps) in cells}
    wanted = steps == full  # of the paper's own length CIFAR-10 is shown also where it is still empty
    shown = [row for row in rows if row.setting in filled or (wanted and row.values["data"] == "cifar10")]
    settings = list(dict.fromkeys(row.setting for row in shown))
    order = list(METHODS)
    ranked = sorted(shown, key=lambda row: order.index(row.values["algorithm"]))
    labels = list(dict.fromkeys(label(row, table) for row in ranked))
    at = {(label(row, table), row.setting): row for row in shown}
    published = any(row.published is not None for row in shown)
    header, lines = [""], []
    for setting in settings:
        name = column(next(row for row in shown if row.setting == setting))
        header += [f"{name}: published, {power(full)} steps"] * published + [f"{name}: ours, {power(steps)} steps"]
    for name in labels:
        line = [name]
        for setting in settings:
            row = at.get((name, setting))
            line += [_published(row)] * published + [_ours(row, steps, cells, table in WITH_GM)]
        lines.append(line)
    return markdown(header, lines)


def _published(row: Row | None) -> str:
    if row is None or row.published is None:
        return EMPTY
    return f"{row.published:.2f}" + (f" ± {row.published_sd:.2f}" if row.published_sd is not None else "")


def _ours(row: Row | None, steps: int, cells: dict[tuple[str, int], Cell], gm: bool) -> str:
    cell = cells.get((row.name, steps)) if row is not None else None
    return cell.text(gm) if cell else EMPTY


def headline(rows: Sequence[Row], cells: dict[tuple[str, int], Cell], elsewhere: dict[str, Any]) -> str:
    """The sentence a visitor remembers; said only when its run was made at the published length."""
    by_name = {row.name: row for row in rows}
    row = by_name[HEADLINE]
    steps = row.values["steps"]
    cell, baseline = cells.get((HEADLINE, steps)), cells.get((BASELINE, steps))
    if cell is None:
        return (
            f"The headline run ({HEADLINE}, {power(steps)} steps) has no record yet, so nothing is claimed; "
            "what has been run stands below."
        )
    n = len(cell.records)
    seeds = f"seed {cell.records[0]['seed']}" if n == 1 else f"{n} seeds"
    sentence = (
        f"On {column(row)}, CADR reaches **{mean_and_sd(cell.accuracies)} %** "
        f"({seeds}; published {row.published:.2f} %) "
        f"in **{minutes(cell.records)}** on one {hardware(cell.records)}"
    )
    if baseline is not None:
        sentence += (
            f", where FixMatch, trained in the same way, reaches {mean_and_sd(baseline.accuracies)} % "
            f"(published {by_name[BASELINE].published:.2f} %)"
        )
    if elsewhere:
        hours = elsewhere["hours"] * steps / elsewhere["steps"]
        sentence += (
            f"; as many steps of {elsewhere['what']} take {hours:.1f} hours on {elsewhere['hardware']} "
            f"([as its issue tracker says]({elsewhere['source']}))"
        )
    return sentence + "."


def compared(rows: Sequence[Row], cells: dict[tuple[str, int], Cell]) -> str:
    """Every method on one setting at one short length, the best first; those without a record are named."""
    alike = [row for row in rows if row.setting == "cifar10-gamma50" and not _ablation(row)]
    base = cells.get((BASELINE, COMPARED))
    done = {row.name: cells[row.name, COMPARED] for row in alike if (row.name, COMPARED) in cells}
    lines = []
    for name, cell in sorted(done.items(), key=lambda item: -statistics.fmean(item[1].accuracies)):
        rarest = [statistics.fmean(r["recall"][c] for r in cell.records) for c in (-2, -1)]
        comparable = base is not None and _abreast(cell) == _abreast(base)
        cost = f"{_mean(cell, 'ms_per_step') / _mean(base, 'ms_per_step'):.2f}×" if base and comparable else EMPTY
        lines.append(
            [
                name.removeprefix("cifar10-gamma50-"),
                f"**{mean_and_sd(cell.accuracies)}** (n = {len(cell.records)})",
                mean_and_sd([r["gm"] for r in cell.records]),
                " and ".join(f"{recall:.1f}" for recall in rarest),
                minutes(cell.records),
                cost,
                hardware(cell.records),
            ]
        )
    header = ["row", "accuracy", "GM", "recall, two rarest classes", "minutes", "a step, FixMatch's = 1", "hardware"]
    text = (
        f"## Every method, CIFAR-10, γ = 50, {power(COMPARED)} steps\n\n"
        "All with the same labels, network, views, optimiser and steps; published options, but for what a row's name "
        "says. A step's time is compared only where as many runs went abreast as with FixMatch."
    )
    missing = ", ".join(row.name.removeprefix("cifar10-gamma50-") for row in alike if row.name not in done)
    parts = [text, markdown(header, lines) if lines else "None has been run yet."]
    return "\n\n".join([*parts, *[f"Not run yet at this length: {missing}."] * bool(missing)])


def _ablation(row: Row) -> bool:
    """A setting of a method's own knob, and not the method."""
    return bool(row.tables) and set(row.tables) <= {"mu", "beta"}


def _abreast(cell: Cell) -> set[int]:
    return {r.get("abreast", 1) for r in cell.records}


def _mean(cell: Cell, key: str) -> float:
    return statistics.fmean(r[key] for r in cell.records)


def recalls(records: Sequence[Record]) -> str:
    """Which classes are found and which are lost, where labels grow rarer from left to right."""
    chosen = [r for r in records if plain(r) and r["row"].startswith("cifar10-gamma50-")]
    if not chosen:
        return ""
    classes = len(chosen[0]["recall"])
    header = ["row", "steps", "seed", *(f"class {c}" for c in range(classes))]
    lines = [
        [r["row"], power(r["steps"]), str(r["seed"]), *(f"{value:.1f}" for value in r["recall"])]
        for r in sorted(chosen, key=lambda r: (-r["steps"], r["row"], r["seed"]))
    ]
    return "## Recall by class (%), CIFAR-10, γ = 50\n\n" + markdown(header, lines)


def variants(records: Sequence[Record]) -> str:
    header = ["row", "changed", "steps", "seed", "accuracy", "GM", "minutes", "hardware"]
    lines = [
        [
            r.get("row") or f"{r['dataset']} {r['algorithm']}",
            ", ".join(f"{k} = {v}" for k, v in (r.get("overrides") or r["options"]).items()) or EMPTY,
            power(r["steps"]),
            str(r["seed"]),
            f"{r['median_10']:.2f}",
            f"{r['gm']:.2f}",
            minutes([r]),
            r["device"],
        ]
        for r in sorted(records, key=lambda r: (-r["steps"], r["file"]))
        if not plain(r)
    ]
    return "## Variants\n\n" + (markdown(header, lines) if lines else "None has been run yet.")


def provenance(records: Sequence[Record]) -> str:
    header = ["record", "last", "mean-10", "median-10", "median-20", "best", "GM", "ms/step", "GiB", "torch", "commit"]
    lines = [
        [f"[{r['file']}](records/{r['file']})"]
        + [f"{r[k]:.2f}" for k in ("last", "mean_10", "median_10", "median_20", "best", "gm")]
        + [_figure(r["ms_per_step"]), _figure(r["peak_memory_gib"]), str(r["torch"]), str(r["commit"] or EMPTY)[:10]]
        for r in records
    ]
    return "## Every record\n\n" + (markdown(header, lines) if lines else "There is none yet.")


def digits(rivals: Record) -> str:
    """Every method on a problem that takes seconds: one column per way of losing labels."""
    if not rivals.get("cells"):
        return ""
    cells, shared = rivals["cells"], rivals["shared"]
    seeds = {len(cell["seed"]) for column in cells.values() for cell in column.values()}
    spread = f"{min(seeds)} to {max(seeds)} seeds" if len(seeds) > 1 else f"{n} seeds" if (n := max(seeds)) > 1 else ""
    over = f"mean ± sample standard deviation over {spread}" if spread else "one seed, which proves little"
    made, runs = rivals["command"], sum(len(cell["seed"]) for column in cells.values() for cell in column.values())
    text = (
        "## Digits: every method, six ways of losing labels\n\n"
        f"Accuracy / geometric mean of the recalls (%), {over}, on 530 balanced test images; {shared['steps']} steps "
        f"of {shared['batch']} labelled and {shared['batch'] * shared['ratio']} unlabelled images with the same small "
        f"network for all (CReST: in each of its six generations). {runs} runs; the last command made "
        f"{made['runs']} of them in {made['minutes']:.0f} minutes, {made['processes']} at a time. *Cost* is a step's "
        "processor time over FixMatch's, *images* how many it passes through the network. Reversed: the nines have "
        "most labels, not the noughts. Written from [rivals.json](rivals.json), which `python benchmarks/rivals.py` "
        "makes."
    )
    lines = []
    for name, row in rivals["rows"].items():
        changed = ", ".join(f"{k} = {v}" for k, v in row["options"].items() if k not in ("target", "evaluations"))
        line = [f"{name} ({changed})" if changed else name]
        for column_ in cells.values():
            cell = column_.get(name)
            line.append(f"{mean_and_sd(cell['accuracy'])} / {mean_and_sd(cell['gm'])}" if cell else EMPTY)
        lines.append([*line, relative(rivals, "ms_per_step", name), relative(rivals, "examples_per_step", name)])
    return text + "\n\n" + markdown(["", *cells, "cost", "images"], lines)


def relative(rivals: Record, key: str, label: str | None) -> str:
    """A row's figure over FixMatch's."""
    figures = rivals.get(key, {})
    return f"{figures[label] / figures['FixMatch']:.2f}×" if label in figures else EMPTY


def _figure(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.2f}"


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def build(
    rows: Sequence[Row],
    records: Sequence[Record],
    elsewhere: dict[str, Any],
    figure: bool,
    rivals: Record | None = None,
) -> str:
    cells = fill(records)
    intro = (
        "Every number of ours is the median test accuracy (%) of the last 10 of 128 evaluations of the averaged model, "
        "± the sample standard deviation over n seeds, with steps, mean minutes a run and hardware beside it; "
        f"{EMPTY} marks a cell that has not been run. The published numbers are for the published number of steps and "
        "most likely one seed. This file is written by `python benchmarks/results.py` from "
        "[records/](records), [rivals.json](rivals.json) and [recipes/](../recipes) alone."
    )
    parts = ["# Results", headline(rows, cells, elsewhere), intro]
    if figure:
        parts.append("![Convergence and confusion matrices of FixMatch and CADR, as in Figure 3](figure3.svg)")
    parts += [section(table, rows, cells) for table in TABLES if _to_show(table, rows, cells)]
    parts += [compared(rows, cells), recalls(records), digits(rivals or {}), variants(records), provenance(records)]
    return "\n\n".join(part for part in parts if part) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    records = read_records(arguments.records)
    figure = (arguments.out.parent / FIGURE.name).exists()
    rivals = json.loads(RIVALS.read_text(encoding="utf-8")) if RIVALS.exists() else None
    rows = read_rows(RECIPE) + read_rows(SUCCESSORS)
    text = build(rows, records, tomllib.loads(ELSEWHERE.read_text(encoding="utf-8")), figure, rivals)
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{arguments.out}: {len(records)} records")
    if arguments.out == RESULTS:
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / "methods.py")], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
