"""Kernels are compiled with what was asked for, once for each kind of card, and loaded once for each device."""

from pathlib import Path

import pytest
import torch
from torch.cuda import _utils

from cadr.kernels import nvrtc


class Loaded:
    def __init__(self, code, name):
        self.code, self.name = code, name

    def set_shared_memory_config(self, shared):
        self.shared = shared


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """What was compiled so far; a device of capability 9.0 is current."""
    compiled = []

    def compile_(text, expression, compute_capability, nvcc_options):
        compiled.append((text, expression, compute_capability, nvcc_options))
        return b"code\0of " + expression.encode(), f"mangled {expression}"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_utils, "_nvrtc_compile", compile_)
    monkeypatch.setattr(_utils, "_cuda_load_module", lambda code, names: {n: Loaded(code, n) for n in names})
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, device))
    nvrtc._loaded.cache_clear()
    return compiled


@pytest.fixture
def source(tmp_path):
    path: Path = tmp_path / "kernel.cu"
    path.write_text("γ", encoding="utf-8")
    return path


def test_a_kernel_is_what_was_asked_for(compiler, source):
    first = nvrtc.kernel((source, source), "f<1>", 7, ("--fmad=false",), "90a")
    assert compiler == [("γ\nγ", "f<1>", "90a", ["--fmad=false"])]
    assert (first.code, first.name, first.shared) == (b"code\0of f<1>", "mangled f<1>", 7)
    assert nvrtc.kernel((source, source), "f<1>", 7, ("--fmad=false",), "90a") is first
    nvrtc.kernel((source,), "g")
    assert compiler[1:] == [("γ", "g", "90", [])]


def test_a_module_belongs_to_the_device_that_was_current_when_it_was_loaded(compiler, source, monkeypatch):
    first = nvrtc.kernel((source,), "f", 0, (), "90a")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    second = nvrtc.kernel((source,), "f", 0, (), "90a")
    assert second is not first
    assert len(compiler) == 1  # the same code


def test_the_next_process_compiles_nothing(compiler, source):
    first = nvrtc.kernel((source,), "f<2>", 3)
    nvrtc._loaded.cache_clear()
    again = nvrtc.kernel((source,), "f<2>", 3)
    assert again is not first
    assert (again.code, again.name, again.shared) == (first.code, first.name, 3)
    assert len(compiler) == 1


def test_whatever_changes_the_code_compiles_anew(compiler, source, monkeypatch):
    def ask(*arguments):
        nvrtc._loaded.cache_clear()
        nvrtc.kernel((source,), *arguments)
        return len(compiler)

    assert ask("f") == 1
    assert ask("g") == 2
    assert ask("f", 0, ("--fmad=false",)) == 3
    assert ask("f", 0, (), "90a") == 4
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)  # another capability
    assert ask("f") == 5
    monkeypatch.setattr(torch, "__version__", "2.99")
    assert ask("f") == 6
    monkeypatch.setattr(torch.version, "cuda", "14.0")
    assert ask("f") == 7
    source.write_text("δ", encoding="utf-8")
    assert ask("f") == 8
    assert ask("f") == 8
