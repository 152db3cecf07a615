"""What is true of CAP, CAI and CADR by their mathematics, whatever the implementation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given

from cadr import functional
from tests.functional.problems import MODEST, Problem, close, gradients, leaf, problems, tensor
from tests.oracles import losses, marginal, risk
from tests.oracles.softmax import log_softmax, softmax

FORMS = ("straight_through", "batch", "pinv")
SKEWED = np.array([0.4, 0.25, 0.15, 0.12, 0.08])


def shared_network(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A linear model's weights, labelled rows, their labels and unlabelled rows."""
    rng = np.random.default_rng(seed)
    weights = leaf(rng.normal(size=(6, 5)))
    labelled, unlabelled = tensor(rng.normal(size=(9, 6))), tensor(rng.normal(size=(25, 6)))
    return weights, labelled, torch.tensor(rng.integers(5, size=9)), unlabelled


@pytest.mark.parametrize("form", FORMS)
def test_with_a_detached_marginal_cap_is_cross_entropy_and_ours_is_not(form):
    weights, labelled, labels, unlabelled = shared_network()
    (cross_entropy,) = gradients(F.cross_entropy(labelled @ weights, labels), weights)
    detached = functional.cap(labelled @ weights, labels, (unlabelled @ weights).detach(), tensor(SKEWED), form)
    close(gradients(detached, weights)[0], cross_entropy)
    ours = functional.cap(labelled @ weights, labels, unlabelled @ weights, tensor(SKEWED), form)
    close(ours.detach(), detached.item())
    assert np.abs(gradients(ours, weights)[0] - cross_entropy).max() > 1e-3


@pytest.mark.parametrize("form", FORMS)
def test_descent_on_cap_lowers_the_marginals_above_the_harmonic_mean(form):
    """dJ/dp̃_c = (f_c/p̃_c)(1 − H/p̃_c): the largest predicted class is pushed down, the smallest up."""
    weak = leaf(np.log(np.tile(SKEWED, (20, 1))))
    labels = torch.arange(5)
    loss = functional.cap(torch.zeros(5, 5, dtype=torch.float64), labels, weak, tensor(SKEWED), form)
    moved = weak.detach() - 0.1 * torch.autograd.grad(loss, weak)[0]
    change = moved.softmax(dim=1).mean(dim=0).numpy() - SKEWED
    assert change[0] < 0 < change[-1]


@pytest.mark.parametrize("form", FORMS)
def test_the_gap_and_its_gradient_vanish_at_a_uniform_marginal(form):
    """Every class leads once: the batch's mean is uniform though its rows are not, and so is the buffer."""
    weak = leaf(2.0 * np.eye(5)[np.arange(20) % 5])
    labelled, labels = tensor(np.random.default_rng(0).normal(size=(7, 5))), torch.arange(7) % 5
    ours = functional.cap(labelled, labels, weak, torch.full((5,), 0.2, dtype=torch.float64), form)
    close(ours, F.cross_entropy(labelled, labels).item(), rtol=1e-13)
    close(gradients(ours, weak)[0], 0.0, atol=1e-15)


@MODEST
@given(problem=problems(priors=("uniform",)))
def test_a_uniform_buffer_has_no_gap_whatever_the_batch(problem: Problem):
    """Step 0: the straight-through marginal takes its value from the buffer alone."""
    weak, labels = leaf(problem.weak), torch.tensor(problem.labels)
    ours = functional.cap(tensor(problem.labelled), labels, weak, tensor(problem.prior))
    close(ours, F.cross_entropy(tensor(problem.labelled), labels).item())
    close(gradients(ours, weak)[0], 0.0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@MODEST
@given(problem=problems(max_classes=30))
def test_one_labelled_class_has_no_gap(form, problem: Problem):
    """In particular a batch of one labelled row: the normaliser takes back what the marginal gives."""
    weak, labels = leaf(problem.weak), torch.full((len(problem.labels),), int(problem.labels[0]))
    ours = functional.cap(tensor(problem.labelled), labels, weak, tensor(problem.prior), form)
    close(ours, F.cross_entropy(tensor(problem.labelled), labels).item())


@MODEST
@given(problem=problems())
def test_the_gap_is_never_negative(problem: Problem):
    labels = torch.tensor(problem.labels)
    certain = tensor(1e4 * np.eye(len(problem.prior))[problem.labels])
    assert functional.cap(certain, labels, tensor(problem.weak), tensor(problem.prior)) >= -1e-12


@pytest.mark.parametrize("form", FORMS)
@MODEST
@given(problem=problems(kinds=("normal", "large", "one_hot"), max_classes=30))
def test_cap_and_supplement_cancel_to_cross_entropy_once_the_labels_are_fitted(form, problem: Problem):
    """All labelled predictions right and confident: L_supp = −J(y), in value and in gradient."""
    fitted = 12.0 * np.eye(len(problem.prior))[problem.labels]
    assume((losses.margin(fitted, problem.threshold_prior, problem.threshold, problem.beta) > 1e-6).all())
    labelled, weak, labels = leaf(fitted), leaf(problem.weak), torch.tensor(problem.labels)
    prior = tensor(problem.prior)
    cap = functional.cap(labelled, labels, weak, prior, form)
    rest = (tensor(problem.threshold_prior), problem.threshold, problem.beta, form)
    supplement = functional.supplement(labelled, weak, prior, *rest)
    assert supplement <= 1e-12
    total, expected = cap + supplement, F.cross_entropy(labelled, labels)
    close(total, expected.item())
    scale = max(1.0, float(np.abs(gradients(cap, weak)[0]).max()))
    by_labelled, by_weak = gradients(total, labelled, weak)
    close(by_labelled, gradients(expected, labelled)[0])
    close(by_weak, 0.0, atol=1e-12 * scale)


@MODEST
@given(problem=problems())
def test_without_confident_labelled_rows_the_supplement_is_zero(problem: Problem):
    """m_i = 0 for every i; a mean over the masked rows alone would divide by nothing."""
    unsure = tensor(np.zeros_like(problem.labelled))
    weak = leaf(problem.weak)
    uniform = torch.full_like(tensor(problem.prior), 1.0 / len(problem.prior))
    ours = functional.supplement(unsure, weak, tensor(problem.prior), uniform)
    assert ours == 0.0
    np.testing.assert_array_equal(gradients(ours, weak)[0], 0.0)


@MODEST
@given(problem=problems())
def test_a_uniform_buffer_turns_cai_into_fixmatch(problem: Problem):
    assume((np.abs(softmax(problem.weak).max(axis=1) - problem.threshold) > 1e-9).all())
    uniform = torch.full_like(tensor(problem.prior), 1.0 / len(problem.prior))
    ours = functional.cai(tensor(problem.weak), tensor(problem.strong), uniform, problem.threshold, problem.beta)
    close(ours, losses.fixmatch(problem.weak, problem.strong, problem.threshold))


@MODEST
@given(problem=problems())
def test_beta_zero_turns_cai_into_fixmatch(problem: Problem):
    """Also for a class whose buffer is exactly zero: 0⁰ = 1."""
    assume((np.abs(softmax(problem.weak).max(axis=1) - problem.threshold) > 1e-9).all())
    emptied = np.where(np.arange(len(problem.prior)) == problem.prior.argmin(), 0.0, problem.prior)
    for prior in (problem.prior, emptied):
        ours = functional.cai(tensor(problem.weak), tensor(problem.strong), tensor(prior), problem.threshold, 0.0)
        close(ours, losses.fixmatch(problem.weak, problem.strong, problem.threshold))


def test_the_unlabelled_loss_is_a_mean_over_all_rows():
    """One of four rows is confident: a quarter of its cross-entropy, not all of it."""
    weak, strong = np.zeros((4, 3)), np.random.default_rng(0).normal(size=(4, 3))
    weak[2, 1] = 50.0
    ours = functional.cai(tensor(weak), tensor(strong), torch.full((3,), 1 / 3, dtype=torch.float64))
    close(ours, -log_softmax(strong)[2, 1] / 4)


def test_thresholds_of_cadr_use_the_new_buffer_and_its_marginal_the_old_one():
    """A slow buffer (μ = 0.5) and a batch that turns it round, so that each wrong choice gives another number."""
    rng = np.random.default_rng(4)
    labelled, labels = 1.2 * rng.normal(size=(16, 3)), rng.integers(3, size=16)
    weak, strong = 1.2 * rng.normal(size=(30, 3)) + np.array([0.0, 0.0, 2.0]), rng.normal(size=(30, 3))
    old, rest = np.array([0.7, 0.25, 0.05]), (0.8, 0.5)
    new = marginal.update_prior(old, weak, 0.5)

    def total(cap_by: np.ndarray, cai_by: np.ndarray, marginal_by: np.ndarray, supplement_by: np.ndarray) -> float:
        return (
            losses.cap(labelled, labels, weak, cap_by, "straight_through")
            + losses.cai(weak, strong, cai_by, *rest)
            + losses.supplement(labelled, weak, marginal_by, supplement_by, *rest, "straight_through")
        )

    right = total(old, new, old, new)
    wrong = [total(new, new, new, new), total(old, old, old, old), total(old, old, old, new), total(old, new, old, old)]
    assert min(abs(right - other) for other in wrong) > 1e-2
    tensors = (tensor(labelled), torch.tensor(labels), tensor(weak), tensor(strong), tensor(old))
    ours, ours_new = functional.cadr(*tensors, 0.5, *rest)
    close(ours, right)
    close(ours_new, new)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("form", ["straight_through", "batch"])
def test_a_class_whose_softmax_underflows_keeps_its_gradient(form, dtype):
    """Class 2 has probability exactly zero in every row; CAP must still be able to raise it."""
    rng = np.random.default_rng(2)
    weak = rng.normal(size=(12, 3))
    weak[:, 2] = -1e4 + rng.integers(-2, 3, size=12)
    weak = weak.astype(np.float32).astype(np.float64)
    assert (softmax(weak)[:, 2] == 0.0).all()
    logits, prior = leaf(weak, dtype), torch.tensor([0.6, 0.39, 0.01], dtype=dtype)
    labels = torch.tensor([0, 0, 1, 2])
    ours = functional.cap(torch.zeros(4, 3, dtype=dtype), labels, logits, prior, form)
    (by_weak,) = gradients(ours, logits)
    assert np.isfinite(by_weak).all()
    # Σ_u ∂J/∂z_{u2} = f_2 (1 − H/p̃_2), since nothing is lost to the other classes: the share over the rows is whole.
    p = np.array([0.6, 0.39, 0.01]) if form == "straight_through" else np.exp(marginal.log_batch_mean(weak))
    share = np.array([0.5, 0.25, 0.25])
    with np.errstate(divide="ignore"):
        expected = share[2] - (1.0 if p[2] == 0 else share[2] / p[2] / (share / p).sum())
    assert expected < -0.5
    close(by_weak[:, 2].sum(), expected, rtol=3e-3 if dtype == torch.float32 else 1e-9)


@MODEST
@given(problem=problems())
def test_aipw_equals_the_papers_equations(problem: Problem):
    """Equations 12–15 with a common N and masked L_u, on losses of the problem's own rows."""
    rows, classes = len(problem.weak), len(problem.prior)
    rng = np.random.default_rng(rows * 1000 + classes)
    truth = rng.integers(classes, size=rows)
    observed = -log_softmax(problem.weak)[np.arange(rows), truth]
    L_u = -log_softmax(problem.strong)[np.arange(rows), losses.pseudo_labels(problem.weak)]
    confident = losses.mask(problem.weak, problem.threshold_prior, problem.threshold, problem.beta)
    missing = rng.integers(2, size=rows).astype(np.float64)
    propensity = rng.uniform(0.02, 1.0, size=rows)
    expected = risk.paper_terms(observed, L_u, confident, missing, propensity).total
    observed_leaf, imputed_leaf = leaf(observed), leaf(L_u * confident)
    ours = functional.aipw(observed_leaf, imputed_leaf, tensor(missing), tensor(propensity))
    assert ours.shape == ()
    close(ours, expected)
    by_observed, by_imputed = gradients(ours, observed_leaf, imputed_leaf)
    close(by_observed, (1 - missing) / propensity / rows)
    close(by_imputed, (1 - (1 - missing) / propensity) / rows)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
def test_aipw_takes_any_kind_of_flag_and_ignores_what_was_not_observed(dtype):
    observed, imputed = torch.tensor([1.0, 2.0, 99.0, -7.0]), torch.tensor([0.5, 1.0, 3.0, 4.0])
    missing, propensity = torch.tensor([0, 0, 1, 1]).to(dtype), torch.tensor([0.5, 0.25, 0.125, 1e-6])
    assert functional.aipw(observed, imputed, missing, propensity) == (1.5 + 5.0 + 3.0 + 4.0) / 4


def test_aipw_of_half_precision_losses_is_fp32():
    values = torch.tensor([1.0, 2.0, 3.0])
    missing = torch.tensor([0.0, 1.0, 0.0])
    half = functional.aipw(values.bfloat16(), (values + 1).bfloat16(), missing, torch.tensor([0.3, 0.3, 0.7]))
    assert half.dtype == torch.float32
    close(half, risk.aipw(values.numpy(), values.numpy() + 1, missing.numpy(), np.array([0.3, 0.3, 0.7])), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_buffer_that_is_exactly_zero_stays_finite(form, dtype):
    """One-hot predictions with μ = 0 leave such a buffer behind; so do flushed denormals on a GPU."""
    labels = torch.tensor([0, 1, 2])
    labelled = torch.zeros(3, 4, dtype=dtype)
    weak = leaf(np.random.default_rng(0).normal(size=(6, 4)), dtype)
    absent = torch.tensor([0.5, 0.3, 0.2, 0.0], dtype=dtype)
    ours = functional.cap(labelled, labels, weak, absent, form)
    if form == "straight_through":  # a class that no labelled row has does not enter J
        gap = losses.jensen_gap(np.log([0.5, 0.3, 0.2]), labels.numpy())
        close(ours, np.log(4.0) + gap, rtol=1e-6)
    assert np.isfinite(gradients(ours, weak)[0]).all()
    present = torch.tensor([0.6, 0.4, 0.0, 0.0], dtype=dtype)
    ours = functional.cap(labelled, labels, weak, present, form)
    assert torch.isfinite(ours)
    assert np.isfinite(gradients(ours, weak)[0]).all()
