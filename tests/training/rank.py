"""One rank of several, or a run of one process: short runs of some methods, each into a folder of its own.

python -m tests.training.rank STEPS FOLDER:STOP:METHOD …     # each stops after STOP steps, as if somebody asked
"""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cadr.algorithms import ALGORITHMS
from cadr.config import Config, Training
from cadr.data.pool import Pool
from cadr.models import ConvNet
from cadr.optim import SGD
from cadr.training import train

ROOT = Path(__file__).resolve().parents[2]
FEW: dict[str, dict[str, Any]] = {
    "crest": {"generations": 2},
    "crest_plus": {"generations": 2},
    "darp": {"refresh_every": 3},
    "remixmatch": {"lambda_r": 0.0},
}


def pool() -> Pool:
    """Small pictures of three classes, told apart by their colour."""
    generator = np.random.default_rng(1)
    truth = np.arange(90) % 3
    examples = generator.integers(120, size=(90, 8, 8, 3)) + 100 * np.eye(3, dtype=np.int64)[truth][:, None, None]
    labels = np.where(np.arange(90) < 24, truth, -1)
    held = slice(45, None)
    return Pool(
        examples.astype(np.uint8), labels, ("ant", "bee", "cat"), "colours",
        test_examples=examples[held].astype(np.uint8), test_labels=truth[held], hidden_labels=truth,
    )  # fmt: skip


def config(method: str, steps: int, batch: int = 5, **training: Any) -> Config:
    settings = Training(
        steps=steps, batch=batch, ratio=3, seed=3, evaluations=3, log_every=2, checkpoint_seconds=0.0, device="cpu",
        **training,
    )  # fmt: skip
    algorithm: Any = ALGORITHMS[method]
    names = {field.name for field in dataclasses.fields(algorithm)}
    made = algorithm(**{name: value for name, value in FEW.get(method, {}).items() if name in names})
    return Config("colours", made, model=ConvNet(channels=4), optimiser=SGD(lr=0.02, ema=0.9), training=settings)


def main() -> None:
    torch.set_num_threads(1)
    for job in sys.argv[2:]:
        folder, stop, method = job.split(":")
        work(Path(folder) / method, int(sys.argv[1]), int(stop), method)


def work(out: Path, steps: int, stop: int, method: str) -> None:
    records = train(config(method, steps), out, pool=pool())
    for record in records:
        if record["step"] >= stop:
            break
    records.close()


def start(count: int, *arguments: str, module: str = "tests.training.rank") -> list[subprocess.Popen[str]]:
    """So many ranks, as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(count):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        if count > 1:
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
            environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        command = [sys.executable, "-m", module, *arguments]
        ranks.append(
            subprocess.Popen(
                command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    return ranks


def ends(ranks: list[subprocess.Popen[str]], seconds: float = 300) -> list[tuple[int, str]]:
    """Their exit statuses, and what they said."""
    found = []
    for rank in ranks:
        said, complained = rank.communicate(timeout=seconds)
        found.append((rank.returncode, said + complained))
    return found


if __name__ == "__main__":
    main()
