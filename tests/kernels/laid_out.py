"""What the kernel that lays out weights does, in tensor code."""

from torch.nn import functional as F


def lay_out(weights, layouts, places, target):
    for weight, layout, place in zip(weights, layouts, places, strict=True):
        taps = weight.detach().flatten(2)  # (outputs, inputs, taps)
        taps = taps.flip(2) if layout.mirrored else taps
        padded = F.pad(taps, (0, 0, 0, layout.inputs - taps.shape[1]))
        output, tap, entry = layout.distances
        target.as_strided(padded.shape, (output, entry, tap), place).copy_(padded)
