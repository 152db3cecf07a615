"""A package that is not there costs a sentence that says how to get it."""

import sys

import pytest

from cadr.data import open_data
from cadr.errors import MissingPackageError
from cadr.report.build import render
from cadr.utils.optional_imports import optional_import


def test_what_is_there_is_given():
    assert optional_import("json", "this") is sys.modules["json"]


def test_what_is_not_there_is_named_as_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingPackageError, match=r"^this needs the package scikit-learn: pip install scikit-learn$"):
        optional_import("sklearn.datasets", "this")


def test_what_comes_with_an_extra_is_named_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"^this format needs the package onnx: pip install 'cadr\[onnx\]'$"):
        optional_import("onnx", "this format", "onnx")


def test_tables_need_arrow_for_parquet(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    sentence = r"t.parquet needs the package pyarrow: pip install 'cadr\[parquet\]'$"
    (tmp_path / "t.parquet").touch()
    with pytest.raises(MissingPackageError, match=sentence):
        open_data(tmp_path / "t.parquet")


def test_a_report_needs_its_template_engine(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingPackageError, match="a report needs the package jinja2"):
        render({})
