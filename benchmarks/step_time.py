"""What a training step costs on a GPU, where the time goes, and how far that is from the memory floor.

    PYTHONPATH=src python3 benchmarks/step_time.py [--out benchmarks/step_time.json] [--wide]
    … --muon                   only CADR's step with Muon and with SGD, in turn, and the optimiser's own part of it

WRN-28-2 on 64 labelled, 448 weak and 448 strong 32×32 views, augmentation included, for FixMatch, CAI, CAP and CADR,
beside a plain eager fp32 version of the same step in the same process. Times are medians of repeated measurements with
device events. Random images: no operation's time depends on what they show.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cadr.algorithms import ALGORITHMS
from cadr.augment import ImageViews
from cadr.config import Training
from cadr.data.pool import Pool
from cadr.models import WideResNet28
from cadr.optim import SGD, Muon, Optimiser
from cadr.training.feed import Inputs
from cadr.training.step import Step

STEPS = 100
BATCH, RATIO = 64, 7
IMAGES = BATCH * (1 + 2 * RATIO)


def median_ms(run: Callable[[], object], repeats: int = 7, per: int = 1) -> float:
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / per)
    return float(statistics.median(times))


def captured_ms(run: Callable[[], object], per: int = 10) -> float:
    """Time of a piece of the step, replayed from a graph of its own."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(per):
            run()
    graph.replay()
    torch.cuda.synchronize()
    return median_ms(graph.replay, per=per)


def pool(images: int = 50_000, classes: int = 10) -> Pool:
    bits = np.random.PCG64(0).random_raw(images * 32 * 32 * 3 // 8).view(np.uint8)
    labels = np.full(images, -1, np.int64)
    labels[:143] = np.arange(143) % classes
    names = tuple(str(c) for c in range(classes))
    return Pool(bits.reshape(images, 32, 32, 3), labels, names, name="random")


def make_step(
    inputs: Inputs, algorithm: str, width: int = 2, optimiser: Optimiser | None = None, **training: Any
) -> Step:
    torch.manual_seed(0)
    model = WideResNet28(width=width).build(inputs.num_classes, (3, 32, 32))
    settings = Training(**({"steps": 2**17, "batch": BATCH, "ratio": RATIO, "seed": 1} | training))
    return Step(model, ALGORITHMS[algorithm](), ImageViews(), inputs, optimiser or SGD(), settings, STEPS)


def fast(
    inputs: Inputs, algorithm: str, width: int = 2, optimiser: Optimiser | None = None
) -> tuple[Step, dict[str, float]]:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step = make_step(inputs, algorithm, width, optimiser)
    step.advance(10)
    torch.cuda.synchronize()
    ms = median_ms(lambda: step.advance(STEPS), repeats=5, per=STEPS)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**30
    return step, {"ms": ms, "images_per_second": IMAGES / ms * 1e3, "peak_memory_gib": peak}


def eager(inputs: Inputs, algorithm: str, tf32: bool, tried: bool) -> dict[str, float]:
    """The same step as most code bases run it: fp32, NCHW, one kernel after the other.

    With `tf32` the convolutions may use TF32, as PyTorch lets them unless told otherwise. `tried`: cuDNN tries its
    algorithms before it chooses, as many tell it to.
    """
    step = make_step(inputs, algorithm, precision="fp32", compile="none")
    step.state.model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    step.state.model.register_forward_pre_hook(lambda _model, inputs: (inputs[0].contiguous(),))
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = tf32, tried
    torch.backends.cuda.matmul.allow_tf32 = False
    step.feed.rows.upload(0, STEPS)
    for _ in range(5):
        step.compute()
    torch.cuda.synchronize()
    return {"ms": median_ms(step.compute, repeats=15)}


def shares(step: Step) -> dict[str, float]:
    """Parts of a step measured alone; in the step itself, augmentation and bookkeeping run beside the network."""
    step.start(STEPS)
    batch = step.feed.batch(step.state.step)
    x = torch.cat((batch.labelled, batch.weak, batch.strong))
    weight = torch.randn(IMAGES, step.inputs.num_classes, device=x.device)

    def network() -> None:
        torch.autograd.grad((step.network(x) * weight).sum(), step.state.parameters)

    def learning() -> None:
        terms = torch.stack(list(step.loss(batch).terms.values()))
        torch.autograd.grad(terms.sum(), step.state.parameters, materialize_grads=True)

    output = step.loss(batch)
    terms = torch.stack([term.detach() for term in output.terms.values()])
    output = output._replace(terms={}, state={k: v.detach() for k, v in output.state.items()})
    before = {name: tensor.clone() for name, tensor in step.state.tensors().items()}
    parts = {"augmentation": captured_ms(lambda: step.feed.batch(step.state.step)), "network": captured_ms(network)}
    parts["losses"] = captured_ms(learning) - parts["network"]
    with torch.no_grad():
        parts["bookkeeping"] = captured_ms(lambda: step.note(batch.index, terms, output))
        parts["optimiser"] = captured_ms(lambda: step.move(step.factor(step.state.step), output))
    step.state.load(before)
    return parts


def busy(step: Step, ms: float) -> dict[str, float]:
    """The share of the time in which a kernel runs: of the untraced time `ms` a step, and of the traced timeline, which
    tracing stretches."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        step.advance(STEPS)
        torch.cuda.synchronize()
    spans = sorted((e.time_range.start, e.time_range.end) for e in trace.events() if e.device_type.name == "CUDA")
    covered, reached = 0.0, spans[0][0]
    for start, end in spans:
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return {"busy": covered / 1e3 / (STEPS * ms), "busy_while_traced": covered / (reached - spans[0][0])}


def bandwidth() -> float:
    """Bytes read and written per second by a large copy on the device."""
    source = torch.randn(2**29, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / (median_ms(lambda: target.copy_(source)) / 1e3)


def floor_bytes(width: int = 2) -> int:
    """What the convolutions cannot avoid: read input and write output; on the way back read the output's gradient and
    write the input's; for the weights read both again. Everything between them could be folded in. bf16."""
    total = 0

    def count(_module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal total
        total += 3 * 2 * IMAGES * (inputs[0].numel() + output.numel())

    model = WideResNet28(width=width).build(10, (3, 32, 32))
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(count)
    model.eval()(torch.zeros(1, 3, 32, 32))
    return total


def of_muon(inputs: Inputs) -> dict[str, Any]:
    """CADR's step with either optimiser, three times in turn; medians."""
    times: dict[str, list[float]] = {"sgd": [], "muon": []}
    moving: dict[str, float] = {}
    for _ in range(3):
        for name, optimiser in (("sgd", SGD()), ("muon", Muon())):
            step, row = fast(inputs, "cadr", optimiser=optimiser)
            times[name].append(row["ms"])
            moving[name] = shares(step)["optimiser"]
            del step
    ms = {name: statistics.median(values) for name, values in times.items()}
    more = 100.0 * (ms["muon"] / ms["sgd"] - 1.0)
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    return about | {"ms": ms, "optimiser_ms": moving, "muon_costs_percent_more": more}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments.add_argument("--wide", action="store_true", help="WRN-28-8 too")
    arguments.add_argument("--muon", action="store_true", help="only what Muon costs")
    options = arguments.parse_args()
    device = torch.device("cuda")
    inputs = Inputs.of(pool(), device)
    if options.muon:
        found = json.dumps(of_muon(inputs), indent=1)
        options.out.write_text(f"{found}\n", encoding="utf-8")
        print(found)
        return
    rate = bandwidth()
    record: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy_bandwidth_tb_s": rate / 1e12,
        "floor_ms": floor_bytes() / rate * 1e3,
        "steps": {},
    }
    print(f"{record['device']}, copy {rate / 1e12:.2f} TB/s, memory floor {record['floor_ms']:.2f} ms", flush=True)
    for name in ("fixmatch", "cai", "cap", "cadr"):
        step, row = fast(inputs, name)
        if name == "cadr":
            row |= {"parts_ms": shares(step), **busy(step, row["ms"])}  # type: ignore[dict-item]
        del step
        record["steps"][name] = row
        print(f"{name:10s} {row['ms']:7.3f} ms a step  {row['peak_memory_gib']:.2f} GiB", flush=True)
    for part, ms in record["steps"]["cadr"]["parts_ms"].items():
        print(f"    {part:28s} {ms:7.3f} ms  {100 * ms / record['steps']['cadr']['ms']:5.1f} %")
    print(f"    device busy {100 * record['steps']['cadr']['busy']:.1f} %")
    for name, tf32, tried in product(("fixmatch", "cadr"), (False, True), (False, True)):
        how = "eager fp32" + " with TF32 convolutions" * tf32 + ", algorithms tried" * tried
        record["steps"][f"{name}, {how}"] = row = eager(inputs, name, tf32, tried)
        print(f"{name}, {how}: {row['ms']:.2f} ms", flush=True)
    if options.wide:
        _, record["steps"]["cadr, WRN-28-8"] = fast(Inputs.of(pool(classes=100), device), "cadr", 8)
        print(f"cadr, WRN-28-8: {record['steps']['cadr, WRN-28-8']['ms']:.2f} ms", flush=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
