"""Kernels are compiled once for each device, with what was asked for."""

from pathlib import Path
from typing import Any

import torch

from cadr import nvrtc


class Compiled:
    def __init__(self, *asked: Any, **options: Any) -> None:
        self.asked, self.options = asked, options

    def set_shared_memory_config(self, shared):
        self.shared = shared


def test_a_kernel_is_compiled_once_for_each_device(tmp_path: Path, monkeypatch):
    source = tmp_path / "kernel.cu"
    source.write_text("γ", encoding="utf-8")
    device = 0
    monkeypatch.setattr(torch.cuda, "_compile_kernel", Compiled)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: device)
    first = nvrtc.kernel((source, source), "f<1>", 7, ("--fmad=false",), "90a")
    assert first.asked == ("γ\nγ", "f<1>")
    assert first.options == {"compute_capability": "90a", "nvcc_options": ["--fmad=false"]}
    assert first.shared == 7
    assert nvrtc.kernel((source, source), "f<1>", 7, ("--fmad=false",), "90a") is first
    assert nvrtc.kernel((source, source), "f<1>", 7, ("--fmad=false",)) is not first
    device = 1  # a module belongs to the device that was current when it was loaded
    assert nvrtc.kernel((source, source), "f<1>", 7, ("--fmad=false",), "90a") is not first
