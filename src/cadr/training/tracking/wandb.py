"""Weights & Biases: a run in the project `cadr`, or $WANDB_PROJECT; its files lie in the run's folder."""

from __future__ import annotations

import os
import secrets
from typing import Any

from cadr.training.run_folder import RunFolder
from cadr.training.tracking.base import Point, Tracker, remember, remembered


class WandB(Tracker):
    """W&B takes steps in their order alone, so what it has are those up to the last one.

    That one is written down in the run's folder, as nobody can be asked for it where $WANDB_MODE is offline.
    """

    module, name, extra = "wandb", "W&B", "wandb"

    def __init__(self, folder: RunFolder, begun: float, points: list[Point]) -> None:
        wandb: Any = self.package()
        self.folder = folder
        known = remembered(folder, "wandb")
        self.id, self.last = str(known.get("id") or secrets.token_hex(4)), int(known.get("step", -1))
        config = folder.config()
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "cadr"),
            id=self.id,
            resume="allow",
            name=folder.path.resolve().name,
            dir=str(folder.path),
            config={} if config is None else config.to_dict(),
            allow_val_change=True,  # of where a run is computed
            settings=wandb.Settings(console="off"),  # a progress bar is no log
        )
        self.last = max(self.last, self.run.step - 1)
        self.send(points)

    def send(self, points: list[Point]) -> None:
        for point in points:
            if point.step > self.last:
                self.last = point.step
                remember(self.folder, "wandb", {"id": self.id, "step": self.last})
                self.run.log(point.values, step=point.step)

    def close(self, finished: bool) -> None:
        self.run.finish(exit_code=0 if finished else 1)
