"""A model, not a measurement: what a step of several ranks communicates and how efficient it is, with its assumptions.

    python benchmarks/scale_model.py        # writes scale_model.json from step_time.json

Efficiency is the time of a step on one GPU over K times that on K. The rows of a step are either those of one GPU (64
labelled ones) or as many for each GPU. What is not shared is done by every rank for the whole batch: views, losses,
counts, and the optimiser. `rank` and `global` are --batch-norm: with `global` the written-out network is not used, and
its time is that of the plain network in fp32 with TF32 (an upper bound: nobody has measured it in bf16 and captured).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from torch import nn

from cadr.models import WideResNet28

HERE = Path(__file__).parent
CLASSES, ROWS = 10, 64 * 15
ASSUMED = {
    "8 GPUs of one machine": {"ranks": 8, "gigabytes_per_second": 300.0, "microseconds_per_collective": 15.0},
    "4 machines of 8 GPUs": {"ranks": 32, "gigabytes_per_second": 40.0, "microseconds_per_collective": 40.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    measured = json.loads((HERE / "step_time.json").read_text())["steps"]
    parts = measured["cadr"]["parts_ms"]
    model = WideResNet28().build(CLASSES, (3, 32, 32))
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    sizes = {
        "gradient": 4 * sum(p.numel() for p in model.parameters()),
        "logits": 4 * ROWS * CLASSES,
        "batch_norm": 2 * 8 * sum(2 * layer.num_features + 1 for layer in norms),  # on the way there and back
    }
    unshared = sum(parts[name] for name in ("augmentation", "losses", "bookkeeping", "optimiser"))
    plain = measured["cadr, eager fp32 with TF32 convolutions"]["ms"] - unshared
    record: dict[str, Any] = {"bytes_a_step": sizes, "assumed": ASSUMED, "efficiency": {}}
    for where, assumed in ASSUMED.items():
        ranks = int(assumed["ranks"])
        for norm, network in (("rank", parts["network"]), ("global", plain)):
            collectives = 2 + (2 * len(norms) if norm == "global" else 0)
            for rows, times in (("same batch", 1), ("batch of each", ranks)):
                moved = sizes["gradient"] + times * sizes["logits"] + (sizes["batch_norm"] if norm == "global" else 0)
                ring = 2 * (ranks - 1) / ranks * moved / (1e6 * assumed["gigabytes_per_second"])
                talk = ring + collectives * assumed["microseconds_per_collective"] / 1000
                one = times * (network + unshared)
                step = times * (network / ranks + unshared) + talk
                record["efficiency"][f"{where}, {norm}, {rows}"] = {
                    "step_ms": round(step, 3),
                    "of_which_communication_ms": round(talk, 3),
                    "efficiency": round(one / (ranks * step), 3),
                }
    (HERE / "scale_model.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
