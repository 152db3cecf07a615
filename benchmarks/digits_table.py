"""Every method on a problem that takes seconds, from rivals.json."""

from __future__ import annotations

from benchmarks.cells import EMPTY, Record, markdown, mean_and_sd, power

from cadr.utils.text import counted

_SAID_ELSEWHERE = ("target", "beta", "steps", "evaluations")  # by the row's label and by its table's heading


def digits(rivals: Record) -> str:
    """Every method on a problem that takes seconds: one column per way of losing labels, one table per length."""
    if not rivals.get("cells"):
        return ""
    cells, shared = rivals["cells"], rivals["shared"]
    seeds = {len(cell["seed"]) for column in cells.values() for cell in column.values()}
    spread = f"{min(seeds)} to {max(seeds)} seeds" if len(seeds) > 1 else f"{n} seeds" if (n := max(seeds)) > 1 else ""
    over = f"mean ± sample standard deviation over {spread}" if spread else "one seed, which proves little"
    made, runs = rivals["command"], sum(len(cell["seed"]) for column in cells.values() for cell in column.values())
    text = (
        "## Digits: every method, six ways of losing labels\n\n"
        "Accuracy (median of the last 10 evaluations) / geometric mean of the recalls (last evaluation), in %, "
        f"{over}, on 530 balanced test images; batches of {shared['batch']} labelled and "
        f"{shared['batch'] * shared['ratio']} unlabelled images and the same small network for all. {runs} runs on a "
        f"CPU ({rivals['processor']}); the last command made {made['runs']} of them in "
        f"{counted(round(made['minutes']), 'minute')}, {made['processes']} at a time. *Cost* is a step's "
        "processor time over FixMatch's, *images* how many it "
        "passes through the network. Reversed: the nines have most labels, not the noughts. Written from "
        "[rivals.json](rivals.json), which `python benchmarks/rivals.py` makes."
    )
    return "\n\n".join([text, *(_of_length(rivals, steps) for steps in lengths(rivals))])


def lengths(rivals: Record) -> list[int]:
    """That of most methods first."""
    shared: int = rivals["shared"]["steps"]
    return sorted({length(rivals, label) for label in rivals["rows"]}, key=lambda steps: (steps != shared, steps))


def length(rivals: Record, label: str) -> int:
    steps: int = (rivals["shared"] | rivals["rows"][label]["options"])["steps"]
    return steps


def _of_length(rivals: Record, steps: int) -> str:
    cells, shared = rivals["cells"], rivals["shared"]
    chosen = {label: row for label, row in rivals["rows"].items() if length(rivals, label) == steps}
    evaluations = (shared | next(iter(chosen.values()))["options"])["evaluations"]
    parts = [f"### {power(steps)} steps, {evaluations} evaluations"]
    if steps != shared["steps"]:
        parts.append(f"As many steps as above in each of {steps // shared['steps']} generations, which begin afresh.")
    lines = []
    for label, row in chosen.items():
        changed = ", ".join(f"{k} = {v}" for k, v in row["options"].items() if k not in _SAID_ELSEWHERE)
        line = [f"{label} ({changed})" if changed else label]
        for column in cells.values():
            cell = column.get(label)
            line.append(f"{mean_and_sd(cell['accuracy'])} / {mean_and_sd(cell['gm'])}" if cell else EMPTY)
        lines.append([*line, relative(rivals, "ms_per_step", label), relative(rivals, "examples_per_step", label)])
    return "\n\n".join([*parts, markdown(["", *cells, "cost", "images"], lines)])


def relative(rivals: Record, key: str, label: str | None) -> str:
    """A row's figure over FixMatch's."""
    figures = rivals.get(key, {})
    return f"{figures[label] / figures['FixMatch']:.2f}×" if label in figures else EMPTY
