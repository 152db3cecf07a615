"""Begin a run, kill it with SIGKILL, continue it, kill it again: a script, so that it can fork before torch threads.

    python -m tests.training.kill FOLDER KILLS [generations]

Children are forked from a process that has imported torch already: a kill costs milliseconds, not seconds. Most come at
any time; but the shortest time is the one that matters most, so every third child kills itself while it saves.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cadr.algorithms import CReST
from cadr.config import Config
from cadr.training import checkpoint
from tests.training import tiny

MOMENTS = 6  # when a checkpoint touches the disk: a part, the manifest, its folder, two renames, the run's folder


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
    done = saving = finished = 0
    while done < kills:
        moment = 1 + saving % MOMENTS if done % 3 == 2 else None
        child = start(victim, settings, moment)
        if moment is None:
            time.sleep(chance.uniform(0.0, 0.3 * whole))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            done += 1
            saving += moment is not None
        elif (victim / "result.json").exists():  # it was faster than the kill
            tiny.assert_same(reference, victim)
            shutil.rmtree(victim)
            finished += 1
        else:
            sys.exit("the killed run could not be continued")
    tiny.finish(settings, victim)
    tiny.assert_same(reference, victim)
    print(f"{done} kills, {saving} of them inside checkpoint.save, {finished + 1} runs equal to the reference")


def start(out: Path, settings: Config, moment: int | None) -> int:
    child = os.fork()
    if child == 0:
        try:
            if moment is not None:
                die_saving(moment)
            tiny.finish(settings, out)
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
            os._exit(1)
    return child


def die_saving(moment: int) -> None:
    """Let this process die when `checkpoint.save` is about to touch the disk for the n-th time."""
    left = moment

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            nonlocal left
            left -= sys._getframe(1).f_code is checkpoint.save.__code__  # `recover` renames as well
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        return wrapped

    for owner, name in ((checkpoint, "_write"), (checkpoint, "sync"), (Path, "rename")):
        setattr(owner, name, dying(getattr(owner, name)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "generations" in sys.argv[3:])
