"""MLflow: a run in the experiment `cadr`, or $MLFLOW_EXPERIMENT_NAME, wherever $MLFLOW_TRACKING_URI points."""

from __future__ import annotations

import os
from typing import Any

from cadr.training.run_folder import RunFolder
from cadr.training.tracking.base import Point, Tracker, remember, remembered

_MOST = {"metrics": 1000, "params": 100}  # that MLflow takes in one request
_LONGEST = 500  # of a parameter, for servers of all ages


class MLflow(Tracker):
    """MLflow keeps every value that it is sent, so what it has is asked for first."""

    module, name, extra = "mlflow", "MLflow", "mlflow"

    def __init__(self, folder: RunFolder, begun: float, points: list[Point]) -> None:
        self.package()
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self.metric, self.begun = Metric, begun
        self.client: Any = MlflowClient()
        known = remembered(folder, "mlflow")
        self.sent: set[tuple[str, int]] = set()
        if known.get("tracking_uri") == self.client.tracking_uri:
            self.run = known["run"]
            self.client.update_run(self.run, status="RUNNING")
            for key in self.client.get_run(self.run).data.metrics:
                self.sent |= {(key, metric.step) for metric in self.client.get_metric_history(self.run, key)}
        else:
            self.run = self.client.create_run(self._experiment(), run_name=folder.path.resolve().name).info.run_id
            remember(folder, "mlflow", {"tracking_uri": self.client.tracking_uri, "run": self.run})
            config = folder.config()
            settings = {} if config is None else config.to_dict()
            self._in_parts("params", [Param(key, str(value)[:_LONGEST]) for key, value in settings.items()])
        self.send(points)

    def send(self, points: list[Point]) -> None:
        new = [
            self.metric(key, value, int(1000 * (self.begun + point.seconds)), point.step)
            for point in points
            for key, value in point.values.items()
            if (key, point.step) not in self.sent
        ]
        self._in_parts("metrics", new)
        self.sent |= {(metric.key, metric.step) for metric in new}

    def close(self, finished: bool) -> None:
        self.client.set_terminated(self.run, status="FINISHED" if finished else "KILLED")

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "cadr")
        found = self.client.get_experiment_by_name(name)
        return str(self.client.create_experiment(name) if found is None else found.experiment_id)

    def _in_parts(self, what: str, content: list[Any]) -> None:
        most = _MOST[what]
        for i in range(0, len(content), most):
            self.client.log_batch(self.run, **{what: content[i : i + most]})
