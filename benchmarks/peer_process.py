"""Run somebody else's training script as it is, and note how long its steps take: started by peers.py.

    python benchmarks/peer_process.py OUT WARM STEPS DEVICE SCRIPT [its arguments]

A step ends where an optimiser has taken one. After WARM + STEPS of them the process ends. Two things are put right that
would keep older code from running at all: loaders' iterators had a `next` before PyTorch 1.13, and a script that knows
only CUDA is given the CPU where that is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import dataloader

_DEVICE = torch.device


class Watch:
    def __init__(self, out: Path, warm: int, steps: int) -> None:
        self.out, self.warm, self.steps = out, warm, steps
        self.done, self.begun = 0, 0.0

    def __call__(self, *_: Any) -> None:
        self.done += 1
        if self.done in (self.warm, self.warm + self.steps) and torch.cuda.is_available():
            torch.cuda.synchronize()
        if self.done == self.warm:
            self.begun = time.perf_counter()
        elif self.done == self.warm + self.steps:
            self.out.write_text(json.dumps({"ms": 1000.0 * (time.perf_counter() - self.begun) / self.steps}))
            sys.stdout.flush()
            os._exit(0)  # loaders' processes see that, too


class _OnCpu(type(_DEVICE)):  # type: ignore[misc]
    def __call__(cls, *_: Any, **__: Any) -> torch.device:
        return _DEVICE("cpu")

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _DEVICE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("warm", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("device")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    register_optimizer_step_post_hook(Watch(asked.out, asked.warm, asked.steps))
    iterators: Any = dataloader._BaseDataLoaderIter
    if not hasattr(iterators, "next"):
        iterators.next = iterators.__next__
    if asked.device == "cpu":
        torch.device = _OnCpu("device", (), {})  # type: ignore[misc]
    sys.argv = [asked.script, *asked.arguments]
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_path(asked.script, run_name="__main__")
    raise SystemExit(f"{asked.script} ended before {asked.warm} + {asked.steps} steps; let it take more.")


if __name__ == "__main__":
    main()
