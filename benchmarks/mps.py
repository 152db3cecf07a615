"""Let runs abreast really share a GPU, through NVIDIA's Multi-Process Service where the driver brings it.

Without it the kernels of different processes take turns; with it one run's multiplications fill the time in which
another waits for memory. The service belongs to this command: it has a folder of its own and ends with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

CONTROL = "nvidia-cuda-mps-control"
_FOLDERS = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")


@contextmanager
def shared_gpu(abreast: int) -> Iterator[dict[str, str]]:
    """What the environment of the runs needs; nothing for one run, without the service, or where one is in use."""
    if abreast == 1 or shutil.which(CONTROL) is None or _FOLDERS[0] in os.environ:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        extra = dict.fromkeys(_FOLDERS, folder)
        started = subprocess.run(
            [CONTROL, "-d"], env=os.environ | extra, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if started.returncode:
            print(f"{CONTROL} does not start, the runs take turns: {started.stderr.strip()}", file=sys.stderr)
            yield {}
            return
        try:
            yield extra
        finally:
            subprocess.run([CONTROL], input="quit\n", env=os.environ | extra, capture_output=True, text=True)
