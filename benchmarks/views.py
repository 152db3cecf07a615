"""How long strong views take: a batch on a GPU (captured in a CUDA graph), and on one CPU core against a Pillow loop.

    PYTHONPATH=src python benchmarks/views.py [--batch 448] [--side 32] [--out views.json]

The Pillow loop does the very same operations with the very same amounts (drawn beforehand, which is not timed), and the
results of both are compared pixel by pixel. Each figure is the least of several repetitions, taken in turns, because
other work on the machine can only add to it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import PIL
import torch
from PIL import Image, ImageDraw
from tests.augment import pillow
from torch import Tensor

from cadr.augment import ImageViews
from cadr.augment.operations import cutout, draw_centres, draw_moves, move
from cadr.augment.randaugment import IDENTITY, OPERATIONS, draw_operations, randaugment
from cadr.models import normalised
from cadr.utils import random_numbers


def sample(batch: int, side: int) -> np.ndarray:
    """CIFAR-10 where it is at hand, else smooth random images: uint8 (batch, side, side, 3)."""
    path = Path(__file__).parents[1] / "data" / "cifar10.npz"
    if side == 32 and path.exists():
        with np.load(path) as archive:
            return np.ascontiguousarray(archive["x_test"][:batch])
    random = np.random.Generator(np.random.PCG64(1))
    small = random.integers(0, 256, (batch, 4, 4, 3)).astype(np.uint8)
    return np.stack([np.asarray(Image.fromarray(image).resize((side, side))) for image in small])


def pillow_loop(images: np.ndarray, turns: list[tuple[list[int], list[float]]], boxes: list[list[int]]) -> np.ndarray:
    """RandAugment and cutout, one image after the other."""
    result = np.empty_like(images)
    for i, pixels in enumerate(images):
        image = Image.fromarray(pixels)
        for operation, amount in turns:
            if operation[i] != IDENTITY:
                image = pillow.OPERATION[OPERATIONS[operation[i]]](image, amount[i])
        ImageDraw.Draw(image).rectangle(boxes[i], (127, 127, 127))
        result[i] = np.asarray(image)
    return result


def on_cpu(batch: int, side: int, repeats: int) -> dict[str, float]:
    torch.set_num_threads(1)
    images = sample(batch, side)
    tensor = torch.from_numpy(images)
    size = side // 2
    ours: list[float] = []
    loop: list[float] = []
    whole: list[float] = []
    views = ImageViews()
    for step in range(repeats):
        key = random_numbers.key(1, torch.tensor(step), 0)
        _, by_turns, by_centres = random_numbers.split(key, 3)
        turns = [draw_operations(by_turn, batch, side, side) for by_turn in random_numbers.split(by_turns, 2)]
        listed = [(operation.tolist(), amount.tolist()) for operation, amount in turns]
        row, column = draw_centres(by_centres, batch, side, side)
        top, left = row - size // 2, column - size // 2
        boxes = torch.stack([left, top, left + size - 1, top + size - 1], dim=1).tolist()

        start = time.perf_counter()
        expected = pillow_loop(images, listed, boxes)
        loop.append(time.perf_counter() - start)

        start = time.perf_counter()
        got = randaugment(tensor, by_turns)
        got = cutout(got, *draw_centres(by_centres, batch, side, side), size)
        ours.append(time.perf_counter() - start)
        np.testing.assert_array_equal(got.numpy(), expected)

        start = time.perf_counter()
        views.strong_view(tensor, key, {})
        whole.append(time.perf_counter() - start)
    return {
        "pillow_ms": 1e3 * min(loop),
        "ours_ms": 1e3 * min(ours),
        "ratio": min(loop) / min(ours),
        "ratio_of_medians": float(np.median(loop) / np.median(ours)),
        "with_weak_view_ms": 1e3 * min(whole),
    }


def replayed(function: Callable[[], Tensor], replays: int = 200) -> float:
    """Milliseconds of one call, measured over replays of a captured graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    graph.replay()
    best = float("inf")
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / replays)
    return best


def kernels(function: Callable[[], Tensor]) -> int:
    """How many kernels one call launches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    return sum(str(event.device_type).endswith("CUDA") for event in profile.events() or [])


def on_gpu(batch: int, side: int) -> dict[str, float | str]:
    images = torch.from_numpy(sample(batch, side)).cuda()
    views, learning = ImageViews(), ImageViews(strong="ctaugment")
    rates = {device: learning.init(device) for device in ("cuda", "cpu")}

    def strong(images: Tensor, step: Tensor) -> Tensor:
        return views.strong_view(images, random_numbers.key(1, step, 0), {})

    def tensors(images: Tensor, step: Tensor) -> Tensor:
        """The strong view by tensor operations alone, whatever else there is for this device."""
        by_weak, by_turns, by_centres = random_numbers.split(random_numbers.key(1, step, 0), 3)
        moved = move(images, draw_moves(by_weak, batch, side, side, flip=True, shift=side // 8))
        centres = draw_centres(by_centres, batch, side, side)
        return cutout(randaugment(moved, by_turns), *centres, side // 2)

    def weak(images: Tensor, step: Tensor) -> Tensor:
        return views.weak(images, random_numbers.key(1, step, 0))

    def ctaugment(images: Tensor, step: Tensor) -> Tensor:
        return learning.strong_view(images, random_numbers.key(1, step, 0), rates[images.device.type])

    def model(images: Tensor, step: Tensor) -> Tensor:
        return normalised(images, dtype=torch.bfloat16)

    compiled = torch.compile(tensors, fullgraph=True, dynamic=False)
    found: dict[str, float | str] = {}
    for name, function, reference in [
        ("strong, as trained with", strong, strong),
        ("strong, tensor code", tensors, strong),
        ("strong, tensor code compiled", compiled, strong),
        ("weak", weak, weak),
        ("strong, ctaugment", ctaugment, ctaugment),
        ("to_model", model, model),
    ]:
        found |= measured(name, function, reference, images)
    return found


def measured(
    name: str,
    function: Callable[[Tensor, Tensor], Tensor],
    reference: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
) -> dict[str, float | str]:
    """Time, kernels, and the share of values that differ from the CPU's (contraction can move a grey level)."""
    step = torch.zeros((), dtype=torch.int64, device=images.device)
    call = partial(function, images, step)
    try:
        differing = (call().cpu() != reference(images.cpu(), step.cpu())).double().mean().item()
        return {
            f"{name}: ms": replayed(call),
            f"{name}: kernels": kernels(call),
            f"{name}: share differing from CPU": differing,
        }
    except Exception as error:  # one way that fails must not hide the others' figures
        return {f"{name}: failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time strong views on this machine.")
    parser.add_argument("--batch", type=int, default=448)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=20, help="repetitions on the CPU")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    figures: dict[str, object] = {
        "batch": arguments.batch,
        "side": arguments.side,
        "torch": torch.__version__,
        "pillow": PIL.__version__,
        "python": platform.python_version(),
        "cpu": on_cpu(arguments.batch, arguments.side, arguments.repeats),
    }
    if torch.cuda.is_available():
        figures["device"] = torch.cuda.get_device_name()
        figures["gpu"] = on_gpu(arguments.batch, arguments.side)
    print(f"{arguments.batch} strong views of {arguments.side}×{arguments.side}")
    for part in ("cpu", "gpu"):
        values = figures.get(part, {})
        assert isinstance(values, dict)
        for name, value in values.items():
            print(
                f"  {part}  {name:50s} {value:>10.4f}" if isinstance(value, float) else f"  {part}  {name:50s} {value}"
            )
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
