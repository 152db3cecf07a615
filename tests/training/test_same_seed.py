"""One seed, one run, on a GPU as on a CPU (whose runs are compared in test_resume.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

# What a library chooses by trying is chosen once in a process: only another process shows it.
RUN = """
import hashlib
import numpy as np
import torch
from cadr.algorithms import CADR
from cadr.config import Training
from cadr.optim import SGD
from cadr.data.pool import Pool
from cadr.models import WideResNet28
from cadr.training.feed import Inputs
from cadr.training.step import Step
from cadr.augment import ImageViews

examples = np.random.default_rng(1).integers(256, size=(500, 32, 32, 3)).astype(np.uint8)
pool = Pool(examples, np.where(np.arange(500) < 60, np.arange(500) % 3, -1), ("a", "b", "c"))
torch.manual_seed(0)
model = WideResNet28().build(3, (3, 32, 32))
training = Training(steps=40, batch=64, ratio=7, seed=5, compile="none")
step = Step(model, CADR(), ImageViews(), Inputs.of(pool, torch.device("cuda")), SGD(), training, longest=40)
step.advance(40)
print(hashlib.sha256(step.state.weights.detach().cpu().numpy().tobytes()).hexdigest())
"""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_every_process_ends_with_the_same_weights():
    results = set()
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        results.add(done.stdout)
    assert len(results) == 1
