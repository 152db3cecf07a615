"""The records one by one, those of each length in a table of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.cells import EMPTY, Record, figure, markdown, minutes, plain, power
from benchmarks.matched import matched_accuracy


def recalls(records: Sequence[Record]) -> str:
    """Which classes are found and which are lost, where labels grow rarer from left to right."""
    chosen = [r for r in records if plain(r) and r["row"].startswith("cifar10-gamma")]
    if not chosen:
        return ""
    classes = len(chosen[0]["recall"])
    header = ["row", "seed", *(f"class {c}" for c in range(classes)), "accuracy", "if names were matched"]
    chosen.sort(key=lambda r: (r["gamma"], r["row"], r["seed"]))
    text = (
        "## Recall by class (%), CIFAR-10, labels rarer from left to right\n\n"
        "At the last evaluation. *If names were matched* is the accuracy under the best one-to-one renaming of the "
        "predicted classes: far above the accuracy, it says that classes are separated but swapped."
    )
    return f"{text}\n\n" + _by_length(
        chosen,
        header,
        lambda r: [
            r["row"],
            str(r["seed"]),
            *(f"{value:.1f}" for value in r["recall"]),
            f"{r['last']:.2f}",
            _matched(r),
        ],
    )


def variants(records: Sequence[Record]) -> str:
    chosen = [r for r in records if not plain(r)]
    header = ["row", "changed", "seed", "accuracy", "GM", "minutes", "hardware"]
    return "## Variants\n\n" + _by_length(
        chosen,
        header,
        lambda r: [
            r.get("row") or f"{r['dataset']} {r['algorithm']}",
            ", ".join(f"{k} = {v}" for k, v in (r.get("overrides") or r["options"]).items()) or EMPTY,
            str(r["seed"]),
            f"{r['median_10']:.2f}",
            f"{r['gm']:.2f}",
            minutes([r]),
            r["device"],
        ],
    )


def provenance(records: Sequence[Record]) -> str:
    header = ["record", "last", "last, names matched", "mean-10", "median-10", "median-20", "best", "GM"]
    return "## Every record\n\n" + _by_length(
        records,
        [*header, "ms/step", "GiB", "hardware", "torch", "commit"],
        lambda r: [
            f"[{r['file']}](records/{r['file']})",
            f"{r['last']:.2f}",
            _matched(r),
            *(f"{r[k]:.2f}" for k in ("mean_10", "median_10", "median_20", "best", "gm")),
            figure(r["ms_per_step"]),
            figure(r["peak_memory_gib"]),
            r["device"],
            str(r["torch"]),
            _commit(r["commit"]),
        ],
    )


def _commit(name: str | None) -> str:
    """Shortened; that the tree had other changes, if only records, stays visible."""
    if not name:
        return EMPTY
    return name[:10] + ("-dirty" if name.endswith("-dirty") else "")


def _matched(record: Record) -> str:
    return f"{matched_accuracy(record['confusion']):.2f}" if record.get("confusion") else EMPTY


def _by_length(records: Sequence[Record], header: Sequence[str], line: Callable[[Record], Sequence[str]]) -> str:
    """One table per number of steps, the longest first."""
    if not records:
        return "None has been run yet."
    lengths = sorted({r["steps"] for r in records}, reverse=True)
    return "\n\n".join(
        f"### {power(steps)} steps\n\n" + markdown(header, [line(r) for r in records if r["steps"] == steps])
        for steps in lengths
    )
