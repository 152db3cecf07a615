"""Begin a run, kill it with SIGKILL, continue it, kill it again: a script, so that it can fork before torch threads.

    python -m tests.train.kill FOLDER KILLS [generations]

Children are forked from a process that has imported torch already: a kill costs milliseconds, not seconds.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from cadr.algorithms import CReST
from cadr.config import Config
from cadr.train import checkpoint
from tests.train import tiny


def main(folder: Path, kills: int, generations: bool) -> None:
    torch.set_num_threads(1)
    settings = tiny.config()
    if generations:
        settings = dataclasses.replace(settings, algorithm=CReST(generations=4))
    reference, victim = folder / "reference", folder / "victim"
    begun = time.perf_counter()
    tiny.finish(settings, reference)
    whole = time.perf_counter() - begun
    chance = random.Random(0)
    done = writing = finished = 0
    while done < kills:
        child = start(victim, settings)
        time.sleep(chance.uniform(0.0, 0.3 * whole))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            done += 1
            writing += (victim / checkpoint.NEW).exists()
        elif (victim / "result.json").exists():  # it was faster than the kill
            tiny.assert_same(reference, victim)
            shutil.rmtree(victim)
            finished += 1
        else:
            sys.exit("the killed run could not be continued")
    tiny.finish(settings, victim)
    tiny.assert_same(reference, victim)
    print(f"{done} kills, {writing} while a checkpoint was being written, {finished + 1} runs equal to the reference")


def start(out: Path, settings: Config) -> int:
    child = os.fork()
    if child == 0:
        try:
            tiny.finish(settings, out)
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
            os._exit(1)
    return child


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "generations" in sys.argv[3:])
