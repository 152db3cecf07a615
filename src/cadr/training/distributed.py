"""A run on several processes: `torchrun --nproc-per-node K -m cadr train …`.

Every rank knows the whole data and makes the same batch; of the pass through the network it does every K-th row
(`network.py`), and the logits of all come together before the loss. So P̂, thresholds, stores and pseudo-labels are
those of the whole batch on every rank, and gradients are summed once. The first rank alone reads and writes the run's
folder, keeps the time, and decides what is decided between steps.
"""

from __future__ import annotations

import atexit
import hashlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

import cadr
from cadr.config import Training
from cadr.errors import ConfigError, TrainingError
from cadr.training.plan import device_of
from cadr.training.prepare import Prepared, fingerprint
from cadr.training.state import TrainingState
from cadr.utils import ranks

_PLACES = ("data", "root", "labels", "features", "device")  # a machine may have its own
_PATIENCE = timedelta(minutes=30)  # for whoever has more to do between steps


def join(device: str) -> None:
    """Meet the other ranks, if torchrun has started any. Once in a process."""
    if ranks.launched() == 1 or ranks.world() > 1:
        return
    on_gpu = device_of(device).type == "cuda"
    if not dist.is_available():
        raise ConfigError("This PyTorch was built without torch.distributed; start cadr without torchrun.")
    if on_gpu and not dist.is_nccl_available():
        raise ConfigError("This PyTorch was built without NCCL, over which GPUs talk; add --device cpu.")
    if on_gpu and ranks.local() >= torch.cuda.device_count():
        raise ConfigError(
            f"This machine has {torch.cuda.device_count()} GPUs, and rank {ranks.local()} on it has none; start at "
            "most so many ranks with --nproc-per-node, or add --device cpu."
        )
    if on_gpu:  # its watchdog asks for events, which a stream that is being captured forbids
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
        torch.cuda.set_device(ranks.local())
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise TrainingError(f"Rank {ranks.number()} cannot meet the other ranks ({reason}).") from None
    atexit.register(_leave)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def check_alike(prepared: Prepared) -> None:
    """Every rank has the same versions, settings and data, and something to do."""
    if ranks.world() == 1:
        return
    config, pool = prepared.config, prepared.pool
    if config.is_instant:
        raise _refusal("The ensemble is fitted by one process; start it without torchrun.")
    if ranks.world() > config.training.batch:
        raise _refusal(
            f"{ranks.world()} ranks share {config.training.batch} labelled rows a step, so that some would have none; "
            "start fewer, or raise --batch."
        )
    ours = {
        "version of cadr": cadr.__version__,
        "version of PyTorch": torch.__version__,
        "data": (fingerprint(pool), pool.contents),
        "configuration": {name: value for name, value in config.to_dict().items() if name not in _PLACES},
    }
    everyones = ranks.everyones(ours)
    for rank, theirs in enumerate(everyones):
        other = [name for name, value in everyones[0].items() if theirs[name] != value]
        if other:
            raise _refusal(f"The {other[0]} on rank {rank} is not that on rank 0; all ranks need the same.")


def same_start(tensors: dict[str, Tensor]) -> None:
    """Begin with what the first rank has: a module that was made in Python may have been made by chance."""
    if ranks.world() > 1:
        for tensor in tensors.values():
            dist.broadcast(tensor, src=0)


def meet(state: TrainingState, training: Training) -> None:
    """At a stop: running statistics of each rank's own rows become common ones, and all weights have to be the same."""
    if ranks.world() == 1:
        return
    if training.batch_norm == "rank":
        for name, buffer in state.model.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                ranks.total(buffer).div_(ranks.world())
    digests = ranks.everyones(hashlib.sha256(state.weights.detach().cpu().numpy().tobytes()).hexdigest())
    other = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if other:
        raise _refusal(
            f"At step {state.done} rank {other[0]} has other weights than rank 0: their machines or libraries differ."
        )


def _refusal(words: str) -> TrainingError:
    """What all ranks find, and the first says."""
    return ranks.SharedError(words) if ranks.number() else TrainingError(words)
