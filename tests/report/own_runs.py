"""Small runs on a table and on images, to predict with and to export."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from cadr.cli.main import main
from cadr.inference.predictor import Predictor
from cadr.training import checkpoint

TINY = ["--steps", "30", "--batch", "8", "--ratio", "2", "--evaluations", "2", "--device", "cpu"]
COLUMNS = ["p", "q", "r"]
NAMES = np.array(["ash", "birch, white", 'oak "royal"'])


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of three well separated kinds of tree, and the kind."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return (10 + rng.normal(size=(n, 3)) + 6 * np.eye(3)[truth]).astype(np.float32), truth


def write_csv(path: Path, header: list[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table_run(folder: Path) -> Path:
    """A run on a CSV with an identifier, some labels missing, class names that need quoting."""
    x, truth = table(90)
    rows = [[f"tree-{i}", *map(float, x[i]), NAMES[truth[i]] if i < 45 else ""] for i in range(90)]
    data = write_csv(folder / "trees.csv", ["id", *COLUMNS, "label"], rows)
    assert main(["train", str(data), "--ignore-columns", "id", *TINY, "--out", str(folder / "run")]) == 0
    return folder / "run"


def write_images(folder: Path, n: int, size: int = 8) -> np.ndarray:
    """Dark and light squares: i.png is light where i is odd."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    images = np.stack([rng.integers(0, 60, (size, size, 3), dtype=np.uint8) + 180 * (i % 2) for i in range(n)])
    for i, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{i:03}.png")
    return images.astype(np.uint8)


def image_run(folder: Path, *flags: str) -> Path:
    write_images(folder / "squares", 40)
    rows: list[list[object]] = [[f"{i:03}.png", "light" if i % 2 else "dark"] for i in range(16)]
    labels = write_csv(folder / "labels.csv", ["file", "label"], rows)
    arguments = [str(folder / "squares"), "--labels", str(labels), *flags, *TINY, "--out", str(folder / "run")]
    assert main(["train", *arguments]) == 0
    return folder / "run"


def by_hand(run: Path, x: np.ndarray) -> np.ndarray:
    """The averaged network written out: standardise, linear, batch norm, leaky ReLU, …, softmax(z / T + b)."""
    tensors, _ = checkpoint.load(run / "checkpoint")
    predictor = Predictor.load(run, device="cpu")
    spec, calibration = predictor.spec, predictor.calibration
    h = (x.astype(np.float64) - np.array(spec.centre)) / np.array(spec.scale)
    layers = sorted({name.split(".")[1] for name in tensors if name.startswith("average.")}, key=int)
    for layer in layers:
        weight, bias = (tensors[f"average.{layer}.{part}"].double().numpy() for part in ("weight", "bias"))
        if weight.ndim == 2:
            h = h @ weight.T + bias
        else:
            mean, var = (tensors[f"buffer.{layer}.running_{part}"].double().numpy() for part in ("mean", "var"))
            h = (h - mean) / np.sqrt(var + 1e-5) * weight + bias
            h = np.where(h > 0, h, 0.1 * h)
    z = h / calibration.temperature + np.array(calibration.correction)
    p = np.exp(z - z.max(1, keepdims=True))
    return np.asarray(p / p.sum(1, keepdims=True))
