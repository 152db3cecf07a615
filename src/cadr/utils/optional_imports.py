"""Packages that only some commands need: training does with torch, numpy and pillow alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cadr.errors import MissingPackageError

_INSTALLED_AS = {"sklearn": "scikit-learn"}


def optional_import(module: str, what: str, extra: str | None = None) -> Any:
    """The module, or a sentence that says what needs it and how it is installed: by itself, or with our extra."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        package = _INSTALLED_AS.get(package, package)
        install = f"'cadr[{extra}]'" if extra else package
        raise MissingPackageError(f"{what} needs the package {package}: pip install {install}") from None
