"""Every method on CIFAR-10, γ = 50, at one short length and with one seed, the best first."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.alike import BASELINE, REMARKS, exceptions, methods, short
from benchmarks.cells import EMPTY, Record, figure, hardware, markdown, minutes, plain, power

from cadr.cli.recipes import Row

COMPARED = 2**15  # steps at which all methods meet
SEED = 1  # and the seed, which draws the labels: those of another are easier or harder


def compared(rows: Sequence[Row], records: Sequence[Record]) -> str:
    """Every method on one setting at one short length, the best first; those without a record are named."""
    names = {row.name: short(row) for row in methods(rows)}
    one = {r["row"]: r for r in records if plain(r) and r["steps"] == COMPARED and r["seed"] == SEED}
    done = {name: one[name] for name in names if name in one}
    base = one.get(BASELINE)
    lines = []
    for name, record in sorted(done.items(), key=lambda item: -item[1]["median_10"]):
        comparable = base is not None and record.get("abreast", 1) == base.get("abreast", 1)
        lines.append(
            [
                names[name],
                f"**{figure(record['median_10'])}**",
                figure(record["gm"]),
                " and ".join(f"{recall:.1f}" for recall in record["recall"][-2:]),
                minutes([record]),
                f"{record['ms_per_step'] / base['ms_per_step']:.2f}×" if base and comparable else EMPTY,
                hardware([record]),
            ]
        )
    header = ["row", "accuracy", "GM", "recall, two rarest classes", "minutes", "a step, FixMatch's = 1", "hardware"]
    text = (
        f"## Every method, CIFAR-10, γ = 50, {power(COMPARED)} steps, seed {SEED}\n\n"
        "All with the same labels, network, kinds of views, optimiser, batches and steps, but for these: "
        f"{exceptions(rows)}. Options are the published ones, but for what a row's name says. {REMARKS} A step's time "
        "is compared only where as many runs went abreast as with FixMatch. Runs with other seeds are listed "
        "further down."
    )
    missing = ", ".join(names[name] for name in names if name not in done)
    parts = [text, markdown(header, lines) if lines else "None has been run yet."]
    return "\n\n".join([*parts, *[f"Not run yet at this length: {missing}."] * bool(missing)])
