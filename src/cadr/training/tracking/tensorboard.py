"""TensorBoard: an event file in the run's folder, for `tensorboard --logdir runs`."""

from __future__ import annotations

from cadr.training.run_folder import RunFolder
from cadr.training.tracking.base import Point, Tracker

_FLUSH = 10  # seconds


class TensorBoard(Tracker):
    """Its points are times of the run, so that pauses between two sittings do not show.

    What is in an event file cannot be taken back. So it is written anew whenever a run begins or is continued; a
    TensorBoard that is open meanwhile drops the points it knows when it meets their steps again.
    """

    module, name, extra = "torch.utils.tensorboard", "TensorBoard", "tensorboard"

    def __init__(self, folder: RunFolder, begun: float, points: list[Point]) -> None:
        self.begun = begun
        place = folder.path / "tensorboard"
        old = list(place.glob("events.out.tfevents.*"))
        self.writer = self.package().SummaryWriter(str(place), flush_secs=_FLUSH, filename_suffix=".cadr")
        config = folder.config()
        if config is not None:
            lines = config.to_toml().splitlines()
            self.writer.add_text("config", "\n".join(f"    {line}" for line in lines), 0, walltime=begun)
        self.send(points)
        for path in old:
            path.unlink(missing_ok=True)

    def send(self, points: list[Point]) -> None:
        for point in points:
            for tag, value in point.values.items():
                self.writer.add_scalar(tag, value, point.step, walltime=self.begun + point.seconds)
        self.writer.flush()

    def close(self, finished: bool) -> None:
        self.writer.close()
