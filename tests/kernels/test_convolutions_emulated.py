"""Our convolutions and the gradients of their weights, with and without warpgroups, played on a CPU."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cadr.kernels import nvrtc
from cadr.kernels.wide_resnet import convolutions
from cadr.kernels.wide_resnet.convolutions import KERNELS, TABLE_ROWS, ConvInput
from tests import emulated
from tests.kernels.test_wide_resnet import by_taps

pytestmark = pytest.mark.skipif(emulated.COMPILER is None, reason="needs g++")
SLOPE, IMAGES = 0.1, 2
OLDER, *WARPGROUPS = [(32, 16, 16), (32, 16, 32), (32, 32, 32), (16, 64, 64)]  # side, inputs and outputs
SQUARE = [shape for shape in (OLDER, *WARPGROUPS) if shape[1] == shape[2]]
AHEAD = [(shape, how) for shape in (OLDER, *WARPGROUPS) for how in ("PLAIN", "ACTIVATED")] + [(OLDER, "IMAGE")]
BACK = [(shape, "GRADIENT") for shape in SQUARE] + [(shape, "JOINED") for shape in SQUARE if shape != OLDER]
WEIGHTS = [(OLDER, "PLAIN"), (OLDER, "IMAGE")] + [
    (shape, how) for shape in SQUARE if shape != OLDER for how in ("PLAIN", "ACTIVATED")
]


def expressions(warpgroup):
    for (side, inputs, outputs), how in AHEAD + BACK:
        if (side, inputs, outputs) != OLDER if warpgroup else (side, inputs, outputs) == OLDER:
            back = "true" if how in ("GRADIENT", "JOINED") else "false"
            residual = "true" if how in ("ACTIVATED", "GRADIENT") else "false"
            keep = "false" if how == "PLAIN" else "true"
            cut = f"{inputs},{outputs},{side}"
            if warpgroup:
                yield f"conv_warpgroup<{cut},8,3,{how},{back},{residual},{keep}>"
            else:
                yield f"conv<{cut},16,{how},{back},{residual}>"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    older = ["sum_partials", *(f"weight_gradient<16,16,32,8,{how}>" for how in ("PLAIN", "IMAGE"))]
    newer = [
        f"weight_gradient_warpgroup<{cut},{how}>" for cut in ("32,32,16", "64,16,8") for how in ("PLAIN", "ACTIVATED")
    ]
    built = [
        emulated.Emulated(tmp_path_factory.mktemp("kernels"), sources, names)
        for sources, names in (
            ((KERNELS / "common.cuh", KERNELS / "conv.cu"), list(expressions(False))),
            (convolutions._cut(*WARPGROUPS[0]).sources, list(expressions(True))),
            (convolutions._SOURCES, older),
            (convolutions._WARPGROUP_SOURCES, newer),
        )
    ]
    return {each.sources: each for each in built}


@pytest.fixture(autouse=True)
def on_a_cpu(played, monkeypatch):
    monkeypatch.setattr(nvrtc, "kernel", lambda sources, *how, **more: played[sources].kernel(sources, *how, **more))
    for module in (convolutions, convolutions):
        monkeypatch.setattr(module, "multiprocessors", lambda device: 1)


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).bfloat16()


def weights(inputs, outputs):
    return drawn(9, outputs, inputs, seed=1) / 16


def convolved(x, taps):
    return torch.from_numpy(by_taps(x.double().numpy(), taps.double().numpy()))


def same(ours, exact, within=5e-3):
    assert torch.linalg.vector_norm(ours.double() - exact) < within * torch.linalg.vector_norm(exact)


def table_of(channels, seed):
    table = torch.randn(TABLE_ROWS, channels, generator=torch.Generator().manual_seed(seed))
    table[3] = table[3].abs() + 0.5
    return table


@pytest.mark.parametrize(("shape", "how"), AHEAD, ids=str)
def test_the_way_ahead(shape, how):
    """With a residual where the input is activated."""
    side, inputs, outputs = shape
    x, norm = drawn(IMAGES, side, side, 3 if how == "IMAGE" else inputs), nn.BatchNorm2d(outputs, momentum=0.1)
    residual = drawn(IMAGES, side, side, outputs, seed=5) if how == "ACTIVATED" else None
    table, taps = table_of(inputs, 2), weights(inputs, outputs)
    source = ConvInput(how, x, table if how == "ACTIVATED" else None)
    output, found, _ = convolutions.conv(source, taps, norm, residual=residual)
    read = x.double()
    if how == "ACTIVATED":
        same(source.rebuilt, F.leaky_relu(table[0] * read + table[1], SLOPE))
        read = source.rebuilt.double()
    elif how == "IMAGE":
        read = F.pad(read, (0, inputs - 3))
    same(output, convolved(read, taps) + (0 if residual is None else residual.double()))
    rows = output.double().flatten(0, 2)
    same(found[2], rows.mean(0), 1e-4)
    same(found[3], (rows.var(0, correction=0) + norm.eps).rsqrt(), 1e-4)
    same(norm.running_var, 0.9 + 0.1 * rows.var(0), 1e-4)


@pytest.mark.parametrize(("shape", "how"), BACK, ids=str)
def test_the_way_back(shape, how):
    """With a residual, or with what comes round by the skip."""
    side, channels, _ = shape
    g, above, z, more = (drawn(IMAGES, side, side, channels, seed=seed) for seed in range(4))
    into, table, norm, taps = (
        table_of(channels, 3),
        table_of(channels, 4),
        nn.BatchNorm2d(channels),
        weights(*shape[1:]),
    )
    before, joined = table.double(), how == "JOINED"
    source = ConvInput(how, g, into, before=above, skip=more if joined else None)
    residual = None if joined else more
    output, completed, gradients = convolutions.conv(source, taps, norm, residual=residual, z=z, table=table)
    dz = into[4] * g.double() + into[5] * above.double() + into[6]
    same(source.rebuilt, dz + more.double() if joined else dz)
    dh = convolved(source.rebuilt, taps) + (0 if joined else more.double())
    same(output, torch.where(before[0] * z.double() + before[1] > 0, dh, SLOPE * dh))
    rows, below = output.double().flatten(0, 2), z.double().flatten(0, 2)
    by_weight = before[3] * (rows * (below - before[2])).sum(0)
    same(gradients[0], by_weight, 1e-4)
    same(gradients[1], rows.sum(0), 1e-4)
    slope = -before[0] * before[3] * by_weight / len(rows)
    same(completed[5], slope, 1e-4)
    same(completed[6], -before[0] * rows.mean(0) - slope * before[2], 1e-4)


@pytest.mark.parametrize(("shape", "how"), WEIGHTS, ids=str)
def test_the_gradient_of_weights(shape, how, monkeypatch):
    (side, channels, _), images = shape, 4
    monkeypatch.setattr(convolutions, "multiprocessors", lambda device: 9)  # so that more than 16 sums are added up
    x, dz = drawn(images, side, side, 3 if how == "IMAGE" else channels), drawn(images, side, side, channels, seed=7)
    table = table_of(channels, 6)
    h = F.leaky_relu(table[0] * x.double() + table[1], SLOPE).bfloat16() if how == "ACTIVATED" else x
    read = F.pad(h.double(), (0, channels - h.shape[-1])).permute(0, 3, 1, 2)
    weight = torch.zeros(channels, channels, 3, 3, dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(F.conv2d(read, weight, padding=1), weight, dz.double().permute(0, 3, 1, 2))
    ours = convolutions.weight_gradient(ConvInput(how, x, table if how == "ACTIVATED" else None), dz)
    same(ours, exact.permute(0, 2, 3, 1), 1e-3)
