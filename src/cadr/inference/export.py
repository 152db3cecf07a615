"""A run's model for use elsewhere, with its preprocessing and calibration inside: examples in, probabilities out.

model.safetensors   the weights, by the names they have in PyTorch
model.json          classes, preprocessing, calibration, and how the network was built
model.pt2           torch.export: needs PyTorch, not this package
model.onnx          ONNX, checked against PyTorch in onnxruntime before it is kept
                    (both also hold classes and input, as model.json has them: extra files, and metadata properties)
MODEL_CARD.md       what the model is, what it was trained on, how good it was, and what to be careful about

A run on the features of a pretrained model of pictures has that inside `model.pt2` and `model.onnx`, where PyTorch can
export it; otherwise, and for texts, these take the features, and say by which model they are made.
"""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cadr.config import name_of
from cadr.data.sources.images import DECODING
from cadr.embedding.encoder import PictureEncoder
from cadr.errors import ConfigError
from cadr.inference.model_card import model_card
from cadr.inference.predictor import Predictor
from cadr.models import normalised
from cadr.utils.files import atomic_write
from cadr.utils.optional_imports import optional_import
from cadr.utils.options import NUMBER, unknown_choice

TOLERANCE = 1e-4  # of a probability, between PyTorch and an exported model
_EXAMPLES = 5  # on which they are compared
_LARGEST = NUMBER / 4  # of a made-up number: its distance from the centre is a finite one, too
_ENCODING = (
    "column after column: its number; where it has an offset, the number less that, taken off in 64 bits; where it has "
    "a since, the days from then to the cell, a date, with a time in UTC as a fraction; where it has a fill, the "
    "number or else the fill, and then 1 if it is missing or else 0; where it has words, for each of them 1 if the "
    "cell is this word or else 0, without space around the cell and with true and false in small letters"
)


class Packaged(nn.Module):
    """Raw examples, uint8 (n, h, w, 3) or float32 (n, d), to calibrated probabilities (n, classes).

    A backbone makes features of pictures first.
    """

    correction: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, predictor: Predictor, backbone: PictureEncoder | None = None) -> None:
        super().__init__()
        spec, calibration = predictor.spec, predictor.calibration
        self.model, self.backbone = predictor.model, None if backbone is None else backbone.network
        self.is_image = spec.kind == "image"
        self.slope = 1.0 / calibration.temperature
        self.register_buffer("correction", torch.tensor(calibration.correction))
        self.register_buffer("centre", torch.tensor(spec.centre or (0.0,)))
        self.register_buffer("scale", torch.tensor(spec.scale or (1.0,)))

    def forward(self, examples: Tensor) -> Tensor:
        features = examples if self.backbone is None else self.backbone(examples)
        x = normalised(examples, self.model) if self.is_image else (features - self.centre) / self.scale
        logits: Tensor = self.model(x)
        return (logits * self.slope + self.correction).softmax(1)


def export_run(
    run: Path | str, out: Path | str, formats: tuple[str, ...], model: nn.Module | None = None
) -> list[Path]:
    """Write the run in folder `run` to the folder `out`; the model card is always written. Returns the files."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ConfigError(f"formats: {unknown_choice(unknown[0], FORMATS)}")
    predictor, out = Predictor.load(run, model, "cpu"), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    backbone = _backbone(predictor) if {"torch", "onnx"} & set(formats) else None
    files = [file for name in formats for file in FORMATS[name](predictor, backbone, out)]
    card = model_card(Path(run), predictor, [file.name for file in files], model, backbone)
    return [*files, _write(out / "MODEL_CARD.md", card.encode())]


def _backbone(predictor: Predictor) -> PictureEncoder | None:
    """What makes features of pictures, if it is PyTorch's to export; a model that is not there any more is not."""
    if predictor.spec.raw != "pictures":
        return None
    try:
        encoder = None if predictor.pretrained is None else predictor.pretrained.load("pictures")
        if not isinstance(encoder, PictureEncoder):
            return None
        _exported(encoder.network, np.zeros((2, *encoder.preprocessing.crop, 3), dtype=np.uint8))
    except Exception:  # a network can be beyond torch.export in any way at all
        return None
    return encoder


def _safetensors(predictor: Predictor, backbone: PictureEncoder | None, out: Path) -> list[Path]:
    save = optional_import(
        "safetensors.torch", "this format", "safetensors"
    ).save  # save_file would keep the file from others
    # Copies: the format has no word for two names of one tensor, which PyTorch has, so each gets its own.
    weights = {
        name: value.clone(memory_format=torch.contiguous_format) for name, value in predictor.model.state_dict().items()
    }
    facts = json.dumps(_facts(predictor), indent=1) + "\n"
    return [_write(out / "model.safetensors", save(weights)), _write(out / "model.json", facts.encode())]


def _facts(predictor: Predictor) -> dict[str, Any]:
    """All that is needed, besides the weights, to get the same probabilities elsewhere."""
    spec, config, calibration = predictor.spec, predictor.config, predictor.calibration
    network = {} if config.model is None else {"name": name_of(config.model), **vars(config.model)}
    return {
        "classes": list(spec.class_names),
        "input": _input(predictor, None),
        "preprocessing": _pixels(predictor.model)
        if spec.kind == "image"
        else {"formula": "(x - centre) / scale", "centre": spec.centre, "scale": spec.scale},
        "network": network,
        "output": {
            "formula": "softmax(logits / temperature + correction)",
            "temperature": calibration.temperature,
            "correction": list(calibration.correction),
            "calibrated": calibration.changes,
        },
    }


def _pixels(model: nn.Module) -> dict[str, Any]:
    """What becomes of pixels before the network, as `normalised` does it."""
    moved = "then (n, height, width, 3) to (n, 3, height, width)"
    if getattr(model, "pixel_mean", None) is None:
        return {"formula": f"x / 127.5 - 1, {moved}"}
    mean, std = (getattr(model, name).flatten().tolist() for name in ("pixel_mean", "pixel_std"))
    return {"formula": f"(x / 255 - mean) / std, {moved}", "mean": mean, "std": std}


def _input(predictor: Predictor, backbone: PictureEncoder | None) -> dict[str, Any]:
    """What the model takes, and how it is made of a table that has words, dates or gaps, or by a pretrained model."""
    spec, size = predictor.spec, predictor.config.source.image_size
    if backbone is not None:
        return {
            "kind": "image",
            "shape": [*backbone.preprocessing.crop, 3],
            "dtype": "uint8",
            "image_files": DECODING,
            "resize": dataclasses.asdict(backbone.preprocessing),
            "pretrained": {"name": backbone.name, "sha256": spec.pretrained, "inside": True},
        }
    encoded: dict[str, Any] = {}
    if spec.pretrained is not None:
        made = {"name": predictor.config.source.features, "sha256": spec.pretrained, "inside": False, "of": spec.raw}
        encoded["pretrained"] = made
    if spec.columns is not None:
        encoded |= {"columns": list(map(dataclasses.asdict, spec.columns)), "encoding": _ENCODING}
    return {
        "kind": spec.kind,
        "shape": list(spec.shape),
        "dtype": "uint8" if spec.kind == "image" else "float32",
        "feature_names": spec.feature_names and list(spec.feature_names),
        **encoded,
        "image_files": DECODING if spec.kind == "image" else None,
        "image_size": size,
        "resize": None if size is None else "bilinear, as Pillow does it, to image_size squared",
    }


def _beside(predictor: Predictor, backbone: PictureEncoder | None) -> dict[str, str]:
    """What a program does not say by itself, as JSON."""
    return {"classes": json.dumps(predictor.class_names), "input": json.dumps(_input(predictor, backbone))}


def _torch(predictor: Predictor, backbone: PictureEncoder | None, out: Path) -> list[Path]:
    path, content = out / "model.pt2", io.BytesIO()  # writing to a full disk itself, PyTorch aborts the process
    program = _program(predictor, backbone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beside = {f"{name}.json": text for name, text in _beside(predictor, backbone).items()}
        torch.export.save(program, content, extra_files=beside)
        content.seek(0)
        loaded = torch.export.load(content).module()
    _compare(predictor, lambda x: loaded(torch.from_numpy(x)).detach().numpy(), path.name, backbone)
    return [_write(path, content.getvalue())]


def _onnx(predictor: Predictor, backbone: PictureEncoder | None, out: Path) -> list[Path]:
    optional_import("onnx", "this format", "onnx")
    optional_import("onnxscript", "this format", "onnx")
    runtime = optional_import("onnxruntime", "this format", "onnx")
    path = out / "model.onnx"
    logger = logging.getLogger("torch.onnx")
    level, logger.level = logger.level, logging.ERROR
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of PyTorch about itself
            made: Any = torch.onnx.export(
                _program(predictor, backbone),
                input_names=["examples"],
                output_names=["probabilities"],
                verbose=False,
                external_data=False,
            )
        model = made.model_proto
        for name, text in _beside(predictor, backbone).items():
            model.metadata_props.add(key=name, value=text)
        content = model.SerializeToString()
    finally:
        logger.level = level
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _compare(predictor, lambda x: session.run(None, {session.get_inputs()[0].name: x})[0], path.name, backbone)
    return [_write(path, content)]


def _program(predictor: Predictor, backbone: PictureEncoder | None) -> Any:
    return _exported(Packaged(predictor, backbone).eval(), _some(predictor, 2, backbone))


def _exported(module: nn.Module, examples: NDArray[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries about themselves
        rows = ({0: torch.export.Dim("rows", min=1)},)
        return torch.export.export(module, (torch.from_numpy(examples),), dynamic_shapes=rows)


def _write(path: Path, content: bytes) -> Path:
    with atomic_write(path) as new:
        new.write_bytes(content)
    return path


def _compare(
    predictor: Predictor, exported: Callable[[Any], Any], name: str, backbone: PictureEncoder | None = None
) -> None:
    """What was exported must say what the run says, for other numbers of rows too; otherwise it is not written."""
    for rows in (1, _EXAMPLES):
        examples = _some(predictor, rows, backbone)
        with torch.inference_mode():
            expected = predictor.probabilities(examples if backbone is None else backbone.encode(examples)).numpy()
        gap = float(np.abs(exported(examples) - expected).max())
        if not gap <= TOLERANCE:
            raise ConfigError(f"{name} differs from the run by {gap:.2g} in a probability, so it was not kept.")


def _some(predictor: Predictor, rows: int, backbone: PictureEncoder | None = None) -> Any:
    """Made-up examples of the right kind, about as large as real ones; what was constant in training varies here."""
    spec, generator = predictor.spec, np.random.Generator(np.random.PCG64(rows))
    if spec.kind == "image" or backbone is not None:
        shape = spec.shape if backbone is None else (*backbone.preprocessing.crop, 3)
        return generator.integers(0, 256, (rows, *shape), dtype=np.uint8)
    scale = np.array(spec.scale)
    noise = generator.normal(size=(rows, *spec.shape)) * np.where(scale < NUMBER, scale, 1.0)
    return np.clip(noise + np.array(spec.centre), -_LARGEST, _LARGEST).astype(np.float32)


FORMATS: dict[str, Callable[[Predictor, PictureEncoder | None, Path], list[Path]]] = {
    "safetensors": _safetensors,
    "torch": _torch,
    "onnx": _onnx,
}
