"""The paper's tables, ours beside the published numbers: each at its own length, then at every other that was run."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cells import EMPTY, Cells, markdown, power

from cadr.cli.recipes import Row

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
    if row.values.get("renaming"):
        return f"{name}, names put right (ours)"
    return f"{name}, known class priors" if "target_prior" in row.values else name


def _rank(row: Row) -> tuple[float, ...]:
    """The paper's order: of methods, and of a method's knob in an ablation."""
    values = row.values
    knob = (-values.get("momentum", 0), values.get("threshold_prior") == "label", values.get("beta", 0))
    return (list(METHODS).index(values["algorithm"]), *knob)


def to_show(table: str, rows: Sequence[Row], cells: Cells) -> bool:
    """CIFAR-10 is shown also where it is still empty; other data once they have a record."""
    reached = {name for name, _ in cells}
    return any(table in row.tables and (row.values["data"] == "cifar10" or row.name in reached) for row in rows)


def section(table: str, rows: Sequence[Row], cells: Cells) -> str:
    """One of the paper's tables: first at its own length, then once for every other length that was run."""
    rows = [row for row in rows if table in row.tables]
    lengths = sorted({steps for name, steps in cells if name in {row.name for row in rows}}, reverse=True)
    full = max(row.values["steps"] for row in rows)
    parts = [f"## {TABLES[table]}"]
    for steps in [full, *(s for s in lengths if s != full)]:
        parts.append(_grid(table, rows, cells, steps, full))
    return "\n\n".join(parts)


def _grid(table: str, rows: Sequence[Row], cells: Cells, steps: int, full: int) -> str:
    filled = {row.setting for row in rows if (row.name, steps) in cells}
    wanted = steps == full  # of the paper's own length CIFAR-10 is shown also where it is still empty
    shown = [row for row in rows if row.setting in filled or (wanted and row.values["data"] == "cifar10")]
    settings = list(dict.fromkeys(row.setting for row in shown))
    labels = list(dict.fromkeys(label(row, table) for row in sorted(shown, key=_rank)))
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


def _ours(row: Row | None, steps: int, cells: Cells, gm: bool) -> str:
    cell = cells.get((row.name, steps)) if row is not None else None
    return cell.text(gm) if cell else EMPTY
