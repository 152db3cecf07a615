"""Predict with an exported model in Ray, without cadr: takes torch, numpy and ray[data].

    cadr export RUN --out exported
    python examples/predict_in_ray.py exported/model.pt2 rows.parquet predictions

The rows are a Parquet file or a folder of them, here or in an object store that pyarrow can read, with the features as
columns of numbers. `predictions` becomes a folder of Parquet files. RAY_ADDRESS names a cluster; without it Ray starts
one on this machine.
"""

import json
import sys

import numpy as np
import ray
import torch


class Model:
    """In a process of its own, which loads the program once."""

    def __init__(self, program):
        inside = {"classes.json": "", "input.json": ""}
        self.model = torch.export.load(program, extra_files=inside).module()
        self.labels = np.array(json.loads(inside["classes.json"]))  # not `classes`: Ray would take it for torch.classes
        self.features = json.loads(inside["input.json"])["feature_names"]

    def __call__(self, rows):
        x = np.stack([rows.pop(name) for name in self.features], axis=1).astype(np.float32)
        with torch.inference_mode():
            probabilities = self.model(torch.from_numpy(x)).numpy()
        return {**rows, "predicted": self.labels[probabilities.argmax(1)], "probability": probabilities.max(1)}


if __name__ == "__main__":
    program, data, out = sys.argv[1:]
    rows = ray.data.read_parquet(data)
    workers = ray.data.ActorPoolStrategy(min_size=1, max_size=int(ray.cluster_resources()["CPU"]))
    rows.map_batches(Model, fn_constructor_args=(program,), batch_size=8192, compute=workers).write_parquet(out)
