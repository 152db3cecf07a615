"""Where in a network what is found: the layer that tells classes apart, and what comes out of its middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from torch import Tensor, nn

from cadr.models.networks import Residual


def class_head(model: nn.Module, num_classes: int) -> str:
    """The name of the last linear layer with an output per class; empty if there is none inside the model."""
    found = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and m.out_features == num_classes]
    return found[-1] if found else ""


def behind_middle(model: nn.Module) -> list[nn.Module]:
    """The modules that take what each unit of a residual network's last stage but one gives; the last layer before the
    head of a plain network; none for other modules."""
    if isinstance(model, Residual):
        units = list(model.units)
        starts = [i for i, unit in enumerate(units) if unit.shortcut is not None]
        return units[starts[-2] + 1 : starts[-1] + 1]
    layers: list[nn.Module] = []
    if isinstance(model, nn.Sequential):
        layers += [m for m in model if isinstance(m, (nn.Conv2d, nn.Linear))]
    return [m for m in layers[-2:-1] if layers.count(m) == 1]  # what runs twice has no one place


@contextmanager
def arriving(modules: Sequence[nn.Module]) -> Iterator[list[list[Tensor]]]:
    """Notes the features (n, d) that flow into each module, batch by batch, those of images averaged over pixels."""
    noted: list[list[Tensor]] = [[] for _ in modules]

    def note(into: list[Tensor], _module: nn.Module, arrived: tuple[Tensor]) -> None:
        x = arrived[0].float()
        into.append(x.mean((2, 3)) if x.ndim == 4 else x.flatten(1))

    with ExitStack() as listening:
        for into, module in zip(noted, modules, strict=True):
            listening.callback(module.register_forward_pre_hook(partial(note, into)).remove)
        yield noted
