"""Where torch.compile cannot work, one sentence says so; other errors stay what they are."""

import pytest
import torch

from cadr.errors import ConfigError
from cadr.training import train
from cadr.training.capture import explained
from tests.training import tiny


def test_a_compiler_that_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(torch._inductor.config.cpp, "cxx", (None, "/nonexistent/g++"))
    monkeypatch.setattr(torch._inductor.config, "fx_graph_cache", False)
    monkeypatch.setattr(torch._functorch.config, "enable_autograd_cache", False)
    with pytest.raises(ConfigError, match=r"^torch\.compile does not work here \(.*compiler.*\); train without it"):
        list(train(tiny.config(4, compile="losses"), tmp_path, pool=tiny.pool()))


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="out of memory"), explained():
        raise RuntimeError("out of memory")
