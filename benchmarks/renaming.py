"""Whether a model's exchanged names are seen in what surrounds its labelled examples, and right ones left alone.

    PYTHONPATH=src python3 benchmarks/renaming.py RUN …      adds finished runs to renaming.json
    python benchmarks/renaming.py                            renaming.json -> renaming.md

Nothing is trained: it is what `cadr report` asks, of finished runs of benchmarks whose truth is known, and the accuracy
that they would have with the names that it finds exchanged put right. The four with held-out images are those of
renaming/:

    … reproduce.py run cifar10-gamma100-cadr --steps 8192 --held-out 5000 --evaluations 8 --seeds 101 102 103 104 \\
        --records benchmarks/renaming
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cells import markdown  # noqa: E402
from benchmarks.matched import accuracy, matched_accuracy  # noqa: E402

from cadr.config import name_of  # noqa: E402
from cadr.report.model_outputs import look  # noqa: E402
from cadr.report.runs import ReportedRun  # noqa: E402

RECORD, OUT = ROOT / "benchmarks" / "renaming.json", ROOT / "benchmarks" / "renaming.md"
_ROWS = 10_000  # unlabelled examples among which neighbours are looked for


def judge(path: Path) -> dict[str, Any]:
    run = ReportedRun.read(path, path.name, 0)
    seen = look(run, None, None, "auto", _ROWS)
    assert seen.evaluation is not None
    confusion = seen.evaluation["confusion"]
    after = np.array(confusion)
    for one, other in seen.exchanged:
        after[:, [one, other]] = after[:, [other, one]]
    config = run.config
    return {
        "run": path.name,
        "algorithm": name_of(config.algorithm),
        "gamma": config.protocol.gamma,
        "seed": config.training.seed,
        "steps": seen.step,
        "on": seen.part,
        "accuracy": round(accuracy(confusion), 2),
        "matched": round(matched_accuracy(confusion), 2),
        "exchanged": [[run.class_names[c] for c in pair] for pair in seen.exchanged],
        "accuracy_after": round(accuracy(after.tolist()), 2),
    }


def build(records: list[dict[str, Any]]) -> str:
    header = [
        "",
        "γ",
        "seed",
        "steps",
        "judged on",
        "accuracy",
        "if names were matched",
        "found exchanged",
        "put right",
    ]
    parts = {"test": "test images", "held_out": "held-out images"}
    lines = [
        [
            *(r["algorithm"], f"{r['gamma']:g}", str(r["seed"]), f"{r['steps']:,}", parts[r["on"]]),
            *(f"{r['accuracy']:.2f}", f"{r['matched']:.2f}"),
            ", ".join(" and ".join(pair) for pair in r["exchanged"]) or "none",
            f"{r['accuracy_after']:.2f}",
        ]
        for r in records
    ]
    what = (
        "Finished runs on CIFAR-10; accuracies in %. Written by `python benchmarks/renaming.py` from `renaming.json`."
    )
    return f"{what}\n\n{markdown(header, lines)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    records = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else []
    for path in parser.parse_args().runs:
        record = judge(path)
        records = [r for r in records if r["run"] != record["run"]] + [record]
        RECORD.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        print(record, flush=True)
    OUT.write_text(build(records), encoding="utf-8")


if __name__ == "__main__":
    main()
