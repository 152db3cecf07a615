"""How the methods contain one another, and how they relate to the functions for somebody else's loop."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch
import torch.nn.functional as F

from cadr import functional
from cadr.algorithms import ALGORITHMS, CADR, CAI, CAP, CAPCAI, Batch, FixMatch, Supervised, forward
from tests.algorithms import toy


def _run(algorithm, seed=0, prior=None, sharpen=6.0):
    """Terms, gradients and output of one step on a model that is confident about some rows."""
    model, views = toy.mlp(5, 4, seed=seed), toy.batch(seed=seed, algorithm=algorithm)
    with torch.no_grad():
        model[3].weight.mul_(sharpen)
    state = algorithm.init(toy.facts())
    if prior is not None:
        state["prior"] = torch.tensor(prior)
    output = algorithm.loss(model, views, state)
    toy.objective(output).backward()
    return output, [p.grad.clone() for p in model.parameters() if p.grad is not None], model, views, state


def _same(one, other):
    torch.testing.assert_close(toy.objective(one[0]), toy.objective(other[0]), rtol=0, atol=0)
    torch.testing.assert_close(one[1], other[1], rtol=0, atol=0)
    for field in ("pseudo", "mask", "prior", "thresholds"):
        assert torch.equal(getattr(one[0], field), getattr(other[0], field))


SKEWED = [0.7, 0.2, 0.09, 0.01]


@pytest.mark.parametrize("seed", range(3))
def test_cai_with_a_uniform_prior_is_fixmatch(seed):
    """Momentum one keeps P̂ uniform, so that the thresholds, taken after the update, are FixMatch's."""
    _same(_run(CAI(threshold=0.6, momentum=1.0), seed), _run(FixMatch(threshold=0.6, momentum=1.0), seed))


@pytest.mark.parametrize("seed", range(3))
def test_cai_with_beta_zero_is_fixmatch_whatever_the_prior(seed):
    one = _run(CAI(threshold=0.6, beta=0.0), seed, SKEWED)
    _same(one, _run(FixMatch(threshold=0.6), seed, SKEWED))
    assert 0 < one[0].mask.sum() < len(one[0].mask)


def test_cai_with_a_skewed_prior_is_not():
    """Guards the two above: rare classes do get in more easily."""
    cai, fixmatch = _run(CAI(threshold=0.9), 0, SKEWED)[0], _run(FixMatch(threshold=0.9), 0, SKEWED)[0]
    assert cai.mask.sum() > fixmatch.mask.sum()
    assert cai.thresholds.argmin() == 3


def test_beta_zero_turns_cap_cai_into_cap():
    _same(_run(CAPCAI(threshold=0.6, beta=0.0), 0, SKEWED), _run(CAP(threshold=0.6), 0, SKEWED))


def test_cap_with_a_uniform_marginal_is_fixmatch():
    cap, fixmatch = _run(CAP(threshold=0.6)), _run(FixMatch(threshold=0.6))
    torch.testing.assert_close(toy.objective(cap[0]), toy.objective(fixmatch[0]))
    torch.testing.assert_close(cap[1], fixmatch[1], rtol=1e-5, atol=1e-6)


def test_cap_is_not_detached():
    cap, fixmatch = _run(CAP(), 0, SKEWED), _run(FixMatch(), 0, SKEWED)
    assert max((a - b).abs().max().item() for a, b in zip(cap[1], fixmatch[1], strict=True)) > 1e-3


def test_supplement_cancels_cap_where_labelled_rows_are_right_and_confident():
    """Every labelled row predicted as its label, above any threshold: CADR is CAI."""
    labels, weak = torch.tensor([0, 0, 1, 2, 3, 0]), torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    labelled = 30 * F.one_hot(labels, 4).float()
    prior = torch.tensor(SKEWED)

    def model(x):
        return x

    views = Batch(labelled, labels, weak.requires_grad_(), 3 * weak.detach(), torch.arange(20))
    outputs = {}
    for name, algorithm in {"cadr": CADR(threshold=0.3), "cai": CAI(threshold=0.3)}.items():
        state = algorithm.init(toy.facts())
        state["prior"] = prior
        outputs[name] = algorithm.loss(model, views, state)
    assert outputs["cadr"].terms["propensity"] > 0.1
    torch.testing.assert_close(toy.objective(outputs["cadr"]), toy.objective(outputs["cai"]))
    (gradient,) = torch.autograd.grad(toy.objective(outputs["cadr"]), weak)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", ["straight_through", "batch", "pinv"])
def test_cadr_is_the_function_for_other_loops(form):
    algorithm = CADR(threshold=0.6, form=form)
    output, gradients, model, views, state = _run(algorithm, 0, SKEWED)
    model.zero_grad()
    logits = forward(model, views.labelled, views.weak, views.strong)
    loss, prior = functional.cadr(
        logits[0], views.labels, logits[1], logits[2], state["prior"], threshold=0.6, form=form
    )
    loss.backward()
    torch.testing.assert_close(loss, toy.objective(output))
    torch.testing.assert_close(prior, output.prior, rtol=0, atol=0)
    torch.testing.assert_close([p.grad for p in model.parameters() if p.grad is not None], gradients)


def test_cap_and_cai_are_too():
    cap, _, model, views, state = _run(CAP(threshold=0.6), 0, SKEWED)
    labelled, weak, strong = forward(model, views.labelled, views.weak, views.strong)
    expected = functional.cap(labelled, views.labels, weak, state["prior"])
    torch.testing.assert_close(cap.terms["supervised"] + cap.terms["propensity"], expected)
    cai = _run(CAI(threshold=0.6), 0, SKEWED)[0]
    torch.testing.assert_close(cai.terms["unlabelled"], functional.cai(weak, strong, cai.prior, threshold=0.6))


def test_defaults_of_functions_and_fields_agree():
    defaults = {f.name: f.default for f in dataclasses.fields(CADR)}
    for function in (functional.update_prior, functional.cap, functional.cai, functional.supplement, functional.cadr):
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not inspect.Parameter.empty and not name.endswith("weights"):  # of a batch's rows
                assert parameter.default == defaults[name], (function.__name__, name)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_method_keeps_the_shape_of_its_state_and_tracks_the_prior(name):
    algorithm = toy.suited(ALGORITHMS[name])
    output, _, model, views, state = _run(algorithm)
    assert {k: (v.shape, v.dtype) for k, v in output.state.items()} == {k: (v.shape, v.dtype) for k, v in state.items()}
    together = [views.labelled, views.weak, views.strong] if "mixmatch" not in name else [views.weak]  # guesses alone
    weak = forward(model, *together)[len(together) // 2][:20]
    momentum = algorithm.momentum  # every method has it
    expected = momentum * 0.25 + (1 - momentum) * F.softmax(weak, 1).mean(0)
    torch.testing.assert_close(output.prior, expected.detach())
    assert torch.equal(output.state["prior"], output.prior)
    assert not any(value.requires_grad for value in output.state.values())
    assert output.pseudo.dtype == torch.int64
    assert output.pseudo.shape == output.mask.shape == (20,)
    assert output.thresholds.shape == (4,)
    assert all(term.ndim == 0 for term in output.terms.values())


def test_supervised_uses_no_pseudo_label():
    output = _run(Supervised(), sharpen=200.0)[0]
    assert output.mask.sum() == 0
    assert list(output.terms) == ["supervised"]


def test_all_views_share_their_batch_statistics():
    """One pass: the labelled logits depend on the unlabelled rows through batch normalisation."""
    model, views = toy.mlp(5, 4), toy.batch()
    together = forward(model, views.labelled, views.weak, views.strong)[0]
    alone = forward(model, views.labelled)[0]
    assert not torch.allclose(together, alone)
    torch.testing.assert_close(together, model(torch.cat([views.labelled, views.weak, views.strong]))[:6])
