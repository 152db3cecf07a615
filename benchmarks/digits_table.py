"""Every method on a problem that takes seconds, from rivals.json."""

from __future__ import annotations

from benchmarks.cells import EMPTY, Record, markdown, mean_and_sd


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
