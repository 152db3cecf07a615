"""How long and how large to train when nobody says: chosen by the data, for people who bring their own.

Recipes and benchmarks do not pass here: their values are the published ones. The numbers are rules of thumb: a hundred
passes over the rows for small networks and five hundred for deep ones, within limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from cadr.data.pool import Pool
from cadr.models import choose

CHOSEN = ("model", "steps", "batch", "ratio", "lr", "ema")
SMALL = ("mlp", "convnet")
_FEW = 4096  # rows


def defaults(pool: Pool, given: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Flat settings for these data, in keeping with those that somebody has given."""
    chosen: dict[str, Any] = {}
    shape = pool.examples.shape[1:]
    model = given.get("model")
    if model is None:
        model = choose(shape if pool.kind == "features" else (shape[-1], *shape[:-1]))
        if device.type == "cpu" and model not in SMALL:
            model = "convnet"  # a deep network would take days
        chosen["model"] = model
    small, few = model in SMALL, pool.num_streamed < _FEW
    batch, ratio = (32, 4) if small and few else (64, 7)
    passes, least, most = (100, 500, 2**14) if small else (500, 2**13, 2**17)
    steps = given.get("steps") or min(max(passes * pool.num_streamed // (batch * ratio), least), most)
    return chosen | {
        "steps": steps,
        "batch": batch,
        "ratio": ratio,
        "lr": 0.1 if small else 0.03,
        "ema": round(min(max(1 - 5 / steps, 0.5), 0.999), 4),  # remembers a fifth of a short run
    }
