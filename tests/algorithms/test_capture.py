"""A step must compile as one graph and be capturable: nothing in it may look at the data from Python."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map

from cadr import functional
from cadr.algorithms import ALGORITHMS, CADR, CAI, CAP, CAPCAI, FixMatch
from tests.algorithms import toy

VARIANTS = {
    **{name: toy.suited(kind) for name, kind in ALGORITHMS.items()},
    "cadr, class propensities": CADR(propensity="class", pseudo_labels="soft"),
    "cadr, other options": CADR(form="batch", supplement_threshold="fixed", target_prior=(1.0, 2.0, 3.0, 4.0)),
    "cai, thresholds from labels": CAI(threshold_prior="label", threshold_floor=0.3),
    "fixmatch, aligned": FixMatch(alignment="labelled", pseudo_labels="soft"),
}


def _gradient(algorithm, weight, views, state):
    """A whole step of a linear model: terms, state, gradient."""
    weight = weight.detach().requires_grad_()
    output = algorithm.loss(lambda x: x @ weight, views, state)
    (gradient,) = torch.autograd.grad(toy.objective(output), weight)
    return output, gradient


@pytest.mark.parametrize("name", VARIANTS)
def test_step_never_looks_at_the_data(name):
    """On tensors that have a shape but no values: reading a value or shaping by one raises."""
    algorithm = VARIANTS[name]
    with FakeTensorMode() as mode:
        inputs = algorithm.init(toy.facts()), toy.batch(algorithm=algorithm), torch.ones(5, 4)
        state, views, weight = tree_map(mode.from_tensor, inputs)
        output, gradient = _gradient(algorithm, weight, views, state)
    assert gradient.shape == (5, 4)
    assert output.mask.shape == (20,)


@pytest.mark.parametrize("shaped_by_data", [lambda x: x[x > 0].mean(), lambda x: x / x.max().item()])
def test_the_check_above_can_fail(shaped_by_data):
    with FakeTensorMode() as mode, pytest.raises((DataDependentOutputException, DynamicOutputShapeException)):
        shaped_by_data(mode.from_tensor(torch.randn(4)))


@pytest.mark.parametrize("name", VARIANTS)
def test_step_is_a_fixed_graph_without_tensors_from_python(name):
    """Copying Python's numbers to the device cannot be captured; what was traced on one batch holds on another."""
    algorithm = VARIANTS[name]
    state, weight = algorithm.init(toy.facts()), torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    graph = make_fx(lambda w, v, s: _gradient(algorithm, w, v, s))(weight, toy.batch(algorithm=algorithm), state)
    assert not [node for node in graph.graph.nodes if "lift_fresh" in str(node.target)]
    other = toy.batch(seed=5, algorithm=algorithm)
    torch.testing.assert_close(graph(weight, other, state)[1], _gradient(algorithm, weight, other, state)[1])


@pytest.mark.parametrize("kind", [CAP, CAPCAI, CADR])
def test_only_the_pseudo_inverse_is_kept_out_of_a_cuda_graph(kind):
    assert [kind(form=form).capturable for form in ("straight_through", "batch", "pinv")] == [True, True, False]


INDUCTOR = pytest.param(
    "inductor",
    marks=[
        pytest.mark.skipif("CADR_TEST_INDUCTOR" not in os.environ, reason="half a minute: set CADR_TEST_INDUCTOR=1"),
        pytest.mark.filterwarnings("ignore"),  # the compiler's own
    ],
)


@pytest.mark.parametrize("backend", ["aot_eager", INDUCTOR])
def test_cadr_compiles_as_one_graph(backend):
    random = torch.Generator().manual_seed(0)
    logits = [3 * torch.randn(n, 10, generator=random) for n in (16, 64, 64)]
    labels, prior = torch.randint(0, 10, (16,), generator=random), torch.rand(10, generator=random).softmax(0)

    def step(labelled: Tensor, weak: Tensor, strong: Tensor) -> tuple[Tensor, Tensor]:
        return functional.cadr(labelled, labels, weak, strong, prior, threshold=0.6)

    results = []
    for function in (step, torch.compile(step, fullgraph=True, backend=backend)):
        inputs = [part.clone().requires_grad_() for part in logits]
        loss, new_prior = function(*inputs)
        results.append((loss.detach(), new_prior, *torch.autograd.grad(loss, inputs)))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [name for name in VARIANTS if not name.endswith("mixmatch")])  # they mix images
def test_half_precision_logits(name, dtype):
    """As good as the same logits in float32, and finite where half precision overflows or underflows."""
    algorithm = VARIANTS[name]
    state = algorithm.init(toy.facts())
    views = toy.batch(features=4, algorithm=algorithm)
    for scale in (2.0, 1e4):
        low = [(scale * part).to(dtype).requires_grad_() for part in (views.labelled, views.weak, views.strong)]
        full = [part.detach().float().requires_grad_() for part in low]
        gradients = []
        for labelled, weak, strong in (low, full):
            inputs = views._replace(labelled=labelled, weak=weak, strong=strong)
            output = algorithm.loss(lambda x: x, inputs, state)
            total = toy.objective(output)
            assert total.dtype == torch.float32
            assert torch.isfinite(total)
            gradients.append(torch.autograd.grad(total, (labelled, weak, strong), materialize_grads=True))
        for one, other in zip(*gradients, strict=True):
            assert torch.isfinite(one).all()
            torch.testing.assert_close(one.float(), other, rtol=2e-2, atol=1e-4)
