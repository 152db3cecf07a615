"""Batch norm over the rows of all ranks: PyTorch's own (SyncBatchNorm) does not run on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from cadr.utils import ranks


class Synced(_BatchNorm):
    """What is mixed into a class of batch norm: moments of all ranks' rows together in training mode."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # as the class below it has it
        batch_statistics = self.training or self.running_mean is None
        if not batch_statistics or ranks.world() == 1:
            return super().forward(input)
        self._check_input_dim(input)  # type: ignore[no-untyped-call]
        mean, variance, count = moments(input)
        if self.training and self.running_mean is not None and self.running_var is not None:
            with torch.no_grad():
                assert self.num_batches_tracked is not None
                self.num_batches_tracked.add_(1)
                share = 1.0 / self.num_batches_tracked if self.momentum is None else self.momentum
                unbiased = variance * (count / (count - 1)).float()
                self.running_mean.add_((mean - self.running_mean) * share)
                self.running_var.add_((unbiased - self.running_var) * share)
        shape = (1, -1, *[1] * (input.ndim - 2))
        y = (input.float() - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            y = y * self.weight.view(shape) + self.bias.view(shape)
        return y.to(input.dtype)


def moments(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance (C,) of each channel over all ranks, and the number of values they are of.

    Ranks may have different numbers of rows. Sums are in float64: the mean's square is taken off again.
    """
    variance, mean = torch.var_mean(x.float(), dim=[d for d in range(x.ndim) if d != 1], correction=0)
    mean, variance = mean.double(), variance.double()
    count = mean.new_full((1,), x.numel() // x.shape[1])
    sums = ranks.total_with_gradient(torch.cat((mean * count, (variance + mean.square()) * count, count)))
    channels, count = len(mean), sums[-1].detach()
    mean = sums[:channels] / count
    variance = (sums[channels:-1] / count - mean.square()).clamp(min=0)
    return mean.float(), variance.float(), count


def synchronise(model: nn.Module) -> None:
    """Let all batch norm of a model be that of all ranks, in place; its parameters and their names stay."""
    for module in model.modules():
        if isinstance(module, _BatchNorm) and not isinstance(module, Synced):
            kind = type(module)
            module.__class__ = _SYNCED.setdefault(kind, type(f"Synced{kind.__name__}", (Synced, kind), {}))


_SYNCED: dict[type, type] = {}  # one class for each class there is
