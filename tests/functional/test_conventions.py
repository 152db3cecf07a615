"""The contract's conventions: signatures, strict thresholds, where gradients may flow, nothing changed in place."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cadr import functional
from cadr.errors import CadrError

FORMS = ("straight_through", "batch", "pinv")
SIGNATURES = {
    "update_prior": "prior, logits_weak, momentum=0.99",
    "cap": "logits_labelled, labels, logits_weak, prior, form='straight_through'",
    "cai": "logits_weak, logits_strong, prior, threshold=0.95, beta=0.5",
    "supplement": "logits_labelled, logits_weak, prior, threshold_prior, threshold=0.95, beta=0.5, "
    "form='straight_through'",
    "cadr": "logits_labelled, labels, logits_weak, logits_strong, prior, momentum=0.99, threshold=0.95, beta=0.5, "
    "form='straight_through'",
    "aipw": "observed, imputed, missing, propensity",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    """Whoever calls by position or leaves a default out gets what the contract says; anything more is keyword-only."""
    parameters = inspect.signature(getattr(functional, name)).parameters.values()
    positional = [p.replace(annotation=p.empty) for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
    assert ", ".join(str(p) for p in positional) == SIGNATURES[name]
    others = [p for p in parameters if p.kind != p.POSITIONAL_OR_KEYWORD]
    assert all(p.kind == p.KEYWORD_ONLY and p.default is not p.empty for p in others)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("row", "confidence"),
    [([0.0, 0.0], 0.5), ([3.0, 3.0, 3.0, 3.0], 0.25), ([1e4, 0.0, 0.0], 1.0), ([0.0, -1e4, 0.0], 0.5)],
)
def test_confidence_at_exactly_the_threshold_is_not_enough(row, confidence, dtype):
    weak = torch.tensor([row], dtype=dtype)
    strong = torch.arange(len(row), dtype=dtype)[None]
    uniform = torch.full((len(row),), 1.0 / len(row), dtype=dtype)
    assert functional.cai(weak, strong, uniform, confidence) == 0.0
    assert functional.cai(weak, strong, uniform, confidence * (1 - 1e-6)) > 0.0
    # Two labelled rows with predictions 0 and 1, p̃ = (¾, ¼, …): the first row alone would give −log 1.5.
    prior = torch.tensor([0.75, 0.25, *[1e-3] * (len(row) - 2)], dtype=dtype)
    labelled = torch.stack([weak[0], torch.zeros(len(row), dtype=dtype).index_fill(0, torch.tensor([1]), 1e-4)])
    exact = functional.supplement(labelled[:1].repeat(2, 1), weak, prior, uniform, confidence)
    assert exact == 0.0
    below = functional.supplement(labelled, weak, prior, uniform, confidence * (1 - 1e-6))
    at = functional.supplement(labelled, weak, prior, uniform, confidence)
    assert abs(below - at) > 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_class_aware_threshold_is_strict_too(dtype):
    """P̂_1 / max P̂ = ¼, β = ½: τ_1 = ½ exactly, and the row's confidence in class 1 is ½."""
    prior = torch.tensor([0.5, 0.125, 0.1875, 0.1875], dtype=dtype)
    weak = torch.tensor([[-1e4, 0.0, 0.0, -1e4]], dtype=dtype)
    strong = torch.zeros(1, 4, dtype=dtype)
    assert functional.cai(weak, strong, prior, 1.0, 0.5) == 0.0
    ours = functional.cai(weak, strong, prior, 1.0 - 1e-6, 0.5)
    torch.testing.assert_close(ours, torch.tensor(4.0, dtype=dtype).log())


def inputs(dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    shapes = {"logits_labelled": (6, 4), "logits_weak": (10, 4), "logits_strong": (10, 4)}
    found = {name: torch.tensor(4.0 * rng.normal(size=s), dtype=dtype) for name, s in shapes.items()}
    found["labels"] = torch.tensor([0, 1, 2, 3, 0, 0])
    found["prior"] = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=dtype)
    found["threshold_prior"] = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=dtype)
    return found


def call(name: str, given: dict[str, Tensor], form: str) -> Any:
    parameters = inspect.signature(getattr(functional, name)).parameters
    arguments = {key: value for key, value in given.items() if key in parameters}
    if "form" in parameters:
        return getattr(functional, name)(**arguments, form=form)
    return getattr(functional, name)(**arguments)


FLOWS = {
    "cap": {"logits_labelled", "logits_weak"},
    "cai": {"logits_strong"},
    "supplement": {"logits_weak"},
    "cadr": {"logits_labelled", "logits_weak", "logits_strong"},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FLOWS)
def test_gradients_flow_where_the_contract_says_and_nowhere_else(name, form):
    given = {k: v.requires_grad_() if v.is_floating_point() else v for k, v in inputs().items()}
    loss = call(name, given, form)
    loss = loss[0] if isinstance(loss, tuple) else loss
    loss.backward()
    flowing = {k for k, v in given.items() if v.grad is not None and bool((v.grad != 0).any())}
    assert flowing == FLOWS[name]


def test_the_new_buffer_carries_no_gradient():
    given = {k: v.requires_grad_() if v.is_floating_point() else v for k, v in inputs().items()}
    assert not functional.update_prior(given["prior"], given["logits_weak"]).requires_grad
    _, new = call("cadr", given, "straight_through")
    assert not new.requires_grad


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*FLOWS, "update_prior"])
def test_nothing_is_changed_in_place(name, form):
    given, kept = inputs(), inputs()
    call(name, given, form)
    for key, value in kept.items():
        assert torch.equal(given[key], value), key


def test_the_straight_through_form_is_the_default():
    given = inputs()
    for name in ("cap", "supplement", "cadr"):
        default = getattr(functional, name)(
            **{k: v for k, v in given.items() if k in inspect.signature(getattr(functional, name)).parameters}
        )
        explicit = call(name, given, "straight_through")
        batch = call(name, given, "batch")
        if name == "cadr":
            default, explicit, batch = default[0], explicit[0], batch[0]
        assert default == explicit != batch


@pytest.mark.parametrize("name", ["cap", "supplement", "cadr"])
def test_an_unknown_form_is_refused(name):
    with pytest.raises(CadrError, match="nonsense"):
        call(name, inputs(), "nonsense")
