"""What the benchmarks' files are called, where they come from, and their published checksums (MD5)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from cadr.data.benchmarks.container import BLOCK, ChecksumError


@dataclass(frozen=True)
class Form:
    """One form in which a benchmark may lie under the root: a file with its checksum, or a folder with its files'."""

    path: str
    md5: str | None = None
    files: dict[str, str | None] = field(default_factory=dict)
    by_contents: bool = False  # verified by a hash of the numbers themselves, whatever they are packed in


@dataclass(frozen=True)
class Download:
    """An official address; the file keeps its name, in `folder` under the root."""

    url: str
    md5: str
    folder: str = ""

    @property
    def path(self) -> str:
        name = self.url.rsplit("/", 1)[-1]
        return f"{self.folder}/{name}" if self.folder else name


@dataclass(frozen=True)
class Known:
    """A benchmark's usual forms, in the order in which they are looked for, and how to get it."""

    forms: tuple[Form, ...]
    downloads: tuple[Download, ...] = ()
    page: str = ""


@dataclass(frozen=True)
class Place:
    """A form that was found."""

    path: Path
    form: Form

    @property
    def md5(self) -> dict[str, str]:
        """Published checksums of a folder's files."""
        return {name: md5 for name, md5 in self.form.files.items() if md5 is not None}

    def verify_archive(self) -> None:
        if self.form.md5 is not None:
            verify_file(self.path, self.form.md5)


def file_md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def verify_file(path: Path, md5: str) -> None:
    got = file_md5(path)
    if got != md5:
        raise ChecksumError(f"{path} is not the published file (MD5 {got}, expected {md5}); download it again")


_TORONTO = "https://www.cs.toronto.edu/~kriz/"
_STANFORD = "http://ai.stanford.edu/~acoates/stl10/"
_ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"

_FASHION: dict[str, str | None] = {
    "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}

KNOWN: dict[str, Known] = {
    "digits": Known(forms=()),
    "fashion_mnist": Known(
        forms=tuple(
            Form(path, files=_FASHION, by_contents=True)
            for path in ("fashion_mnist", "fashion-mnist", "FashionMNIST/raw")
        ),
        downloads=tuple(Download(_ZALANDO + name, str(md5), "fashion_mnist") for name, md5 in _FASHION.items()),
        page="https://github.com/zalandoresearch/fashion-mnist",
    ),
    "cifar10": Known(
        forms=(
            Form("cifar10.npz", by_contents=True),
            Form(
                "cifar-10-batches-py",
                files={
                    "data_batch_1": "c99cafc152244af753f735de768cd75f",
                    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                    "data_batch_4": "634d18415352ddfa80567beed471001a",
                    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                    "test_batch": "40351d587109b95175f43aff81a1287e",
                },
                by_contents=True,
            ),
            Form(
                "cifar-10-batches-bin",
                files=dict.fromkeys([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]),
                by_contents=True,
            ),
            Form("cifar-10-python.tar.gz", md5="c58f30108f718f92721af3b95e74349a", by_contents=True),
            Form("cifar-10-binary.tar.gz", md5="c32a1d4ab5d03f1284b67883e8d87530", by_contents=True),
        ),
        downloads=(Download(_TORONTO + "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),),
        page=_TORONTO + "cifar.html",
    ),
    "cifar100": Known(
        forms=(
            Form("cifar100.npz", by_contents=True),
            Form(
                "cifar-100-python",
                files={"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
            ),
            Form("cifar-100-binary", files={"train.bin": None, "test.bin": None}),
            Form("cifar-100-python.tar.gz", md5="eb9058c3a382ffc7106e4002c42a8d85"),
            Form("cifar-100-binary.tar.gz", md5="03b5dce01913d631647c71ecec9e9cb8"),
        ),
        downloads=(Download(_TORONTO + "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),),
        page=_TORONTO + "cifar.html",
    ),
    "stl10": Known(
        forms=(
            Form(
                "stl10_binary",
                files={
                    "train_X.bin": "918c2871b30a85fa023e0c44e0bee87f",
                    "train_y.bin": "5a34089d4802c674881badbb80307741",
                    "unlabeled_X.bin": "5242ba1fed5e4be9e1e742405eb56ca4",
                    "test_X.bin": "7f263ba9f9e0b06b93213547f721ac82",
                    "test_y.bin": "36f9794fa4beb8a2c72628de14fa638e",
                },
            ),
            Form("stl10_binary.tar.gz", md5="91f7769df0f17e558f3565bffb0c7dfb"),
        ),
        downloads=(Download(_STANFORD + "stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb"),),
        page="https://cs.stanford.edu/~acoates/stl10/",
    ),
    "mini_imagenet": Known(
        forms=tuple(
            Form(path)
            for path in ("mini_imagenet.npz", "mini_imagenet", "mini-imagenet", "miniImageNet", "miniimagenet")
        ),
        page="https://github.com/yaoyao-liu/mini-imagenet-tools",
    ),
}
