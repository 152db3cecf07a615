"""The good files that fuzz.py damages, small ones of every kind that a command reads, and the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

Run = Callable[[list[str], Path], tuple[int, str, float]]


class Kind(NamedTuple):
    """Files of one kind, and who reads them."""

    damage: str  # which files of the folder are damaged, as a pattern
    commands: tuple[str, ...]


_TABLE = ("data show {f}", "diagnose {f}", "train {f} --out new", "predict run {f} --out p.csv",
          "train {f} --algorithm fixmatch --steps 4 --out new", "predict net {f} --out p.parquet",
          "diagnose {f} --weights-out w.csv")  # fmt: skip
_LABELS = ("data show pictures --labels {f}", "diagnose pictures --labels {f}")
_RUN = ("evaluate net", "predict net t.csv --out p.csv", "report net --out r.html",
        "report net --out r.html --to-label a.csv", "export net --formats safetensors",
        "train t.csv --algorithm fixmatch --steps 20 --out net",
        "export-tasks net --to label-studio --out asked.json")  # fmt: skip
_ENSEMBLE = (*(command.replace("net", "run") for command in _RUN[:5]), "train t.csv --out run")
KINDS = {
    "CSV": Kind("t.csv", _TABLE),
    "Parquet": Kind("t.parquet", _TABLE),
    "npz": Kind("t.npz", (*_TABLE[:3], "predict flat {f} --out p.csv")),
    "npy": Kind("x.npy", ("data show {f} --labels y.csv", "train {f} --labels y.csv --out new")),
    "npy labels": Kind("y.npy", ("data show x.npy --labels {f}", "diagnose x.npy --labels {f}")),
    "picture": Kind(
        "pictures/*.*",
        (
            "data show pictures --labels labels.csv",
            "predict seen pictures --out p.csv",
            "predict seen {f} --out p.csv",
            "report seen --out r.html",
        ),
    ),
    "labels CSV": Kind("labels.csv", (*_LABELS, "predict seen pictures --labels {f} --out p.csv")),
    "Label Studio": Kind("tasks.json", _LABELS),
    "CVAT": Kind("tasks.xml", _LABELS),
    "split": Kind("split.json", ("data show digits --split {f}", "diagnose digits --split {f}")),
    "recipe": Kind(
        "recipe.toml",
        ("train {f}:a --steps 2 --out new", "compare {f}:a --algorithms fixmatch --seeds 1 --steps 2 --out new"),
    ),
    "run folder": Kind("net/*.*", _RUN),
    "ensemble's run folder": Kind("run/*.*", _ENSEMBLE),
    "checkpoint": Kind("net/checkpoint/*", _RUN),
    "ensemble's checkpoint": Kind("run/checkpoint/*", _ENSEMBLE),
    "preprocessing": Kind(
        "preprocessor_config.json", ("embed pictures --labels labels.csv --features m.onnx --out e.npz",)
    ),
    "ONNX model": Kind("m.onnx", ("embed pictures --labels labels.csv --features {f} --out e.npz",)),
}


def make_good(folder: Path, run: Run) -> None:
    """The undamaged files, made by the program itself where it writes such."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    draw = np.random.default_rng(0)
    truth = draw.integers(0, 3, 90)
    x = (draw.normal(size=(90, 4)) + 3 * np.eye(3, 4)[truth]).astype(np.float32)
    given = np.where(draw.random(90) < np.array([0.6, 0.4, 0.3])[truth], truth, -1)
    names = np.array(["owl", "wren", "jay", ""])[given]
    words, dates = np.array(["red", "blue", "", "a b"])[truth], np.datetime64("2025-01-01") + np.arange(90)
    columns = {"a": x[:, 0], "b c": x[:, 1], "hue": words, "day": dates.astype(str), "label": names}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    nested = pa.array([str(name) or None for name in names])
    pq.write_table(pa.table({**columns, "day": pa.array(dates.astype("datetime64[us]")), "label": nested}),
                   folder / "t.parquet")  # fmt: skip
    np.savez(folder / "t.npz", x=x, y=given)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", given)
    (folder / "y.csv").write_text("row,label\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names) if n))
    (folder / "pictures").mkdir()
    for i in range(24):
        pixels = np.clip(draw.normal(60 + 70 * truth[i], 20, (12, 12, 3)), 0, 255).astype(np.uint8)
        suffix = ("png", "jpg", "gif", "bmp", "tif", "webp")[i % 6]
        Image.fromarray(pixels).save(folder / "pictures" / f"p{i:02}.{suffix}")
    files = sorted(path.name for path in (folder / "pictures").iterdir())
    said = [(file, str(["owl", "wren", "jay"][truth[i]])) for i, file in enumerate(files) if i % 3]
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"{file},{name}\n" for file, name in said))
    tasks = [{"id": i, "data": {"image": f"/data/local-files/?d=pictures/{file}"}, "annotations": [{"result": [
        {"type": "choices", "from_name": "label", "to_name": "image", "value": {"choices": [name]}}]}]}
        for i, (file, name) in enumerate(said)]  # fmt: skip
    (folder / "tasks.json").write_text(json.dumps(tasks))
    images = "".join(f'<image id="{i}" name="{file}" width="12" height="12"><tag label="{name}" source="manual"></tag>'
                     "</image>" for i, (file, name) in enumerate(said))  # fmt: skip
    (folder / "tasks.xml").write_text(f"<annotations><version>1.1</version>{images}</annotations>")
    (folder / "recipe.toml").write_text(
        'title = "t"\n[settings]\ns = { data = "digits", protocol = "longtail", n_max = 20, gamma = 5.0, batch = 8 }\n'
        '[rows]\na = { setting = "s", algorithm = "fixmatch" }\n'
    )
    _onnx(folder / "m.onnx")
    size = {"do_resize": True, "size": {"height": 12, "width": 12}, "do_normalize": True}
    scale = {"do_rescale": True, "rescale_factor": 1 / 255, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(size | scale))
    for command in (
        "data split digits --protocol longtail --n-max 20 --gamma 5 --out split.json",
        "train t.csv --out run",
        "train t.csv --algorithm fixmatch --steps 20 --out net",
        "train t.npz --out flat",
        "train pictures --labels labels.csv --algorithm fixmatch --steps 4 --batch 4 --ratio 1 --model mlp --out seen",
    ):
        status, said_, _ = run(command.split(), folder)
        if status != 0:
            raise SystemExit(f"cadr {command} fails on good files: {said_}")


def _onnx(path: Path) -> None:
    """A model of two channels' means, so that its features differ between pictures."""
    from onnx import TensorProto, helper, save

    shape: list[str | int | None] = ["n", 3, 12, 12]
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["m"]), helper.make_node("Flatten", ["m"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
