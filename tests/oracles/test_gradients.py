"""The oracles' gradients by hand against central differences of the losses with their stop-gradients held."""

from __future__ import annotations

import numpy as np
import pytest

from . import gradients, losses, marginal
from .softmax import Array, Indices, softmax

SETTINGS = (0.5, 0.5)  # threshold, β


@pytest.fixture(params=[(2, 1, 1), (3, 5, 4), (4, 6, 3), (4, 3, 9)], ids=lambda p: "C{}-B{}-U{}".format(*p))
def problem(request: pytest.FixtureRequest) -> tuple[Array, Indices, Array, Array, Array]:
    classes, batch, stream = request.param
    rng = np.random.default_rng(5)
    prior = rng.exponential(size=classes)
    return (
        2.0 * rng.normal(size=(batch, classes)),
        rng.integers(classes, size=batch),
        2.0 * rng.normal(size=(stream, classes)),
        rng.normal(size=(stream, classes)),
        prior / prior.sum(),
    )


@pytest.mark.parametrize("form", marginal.FORMS)
def test_cap(problem, form):
    labelled, labels, weak, _, prior = problem
    by_labelled, by_weak = gradients.cap(labelled, labels, weak, prior, form)
    numeric = gradients.central(lambda x: losses.cap(x, labels, weak, prior, form), labelled)
    np.testing.assert_allclose(by_labelled, numeric, atol=1e-8)
    numeric = gradients.central(lambda x: losses.cap(labelled, labels, x, prior, form, held_weak=weak), weak)
    np.testing.assert_allclose(by_weak, numeric, atol=1e-8)


@pytest.mark.parametrize("form", marginal.FORMS)
def test_supplement(problem, form):
    labelled, _, weak, _, prior = problem
    uniform = np.full_like(prior, 1.0 / len(prior))
    numeric = gradients.central(
        lambda x: losses.supplement(labelled, x, prior, uniform, *SETTINGS, form, held_weak=weak), weak
    )
    by_weak = gradients.supplement(labelled, weak, prior, uniform, *SETTINGS, form)
    np.testing.assert_allclose(by_weak, numeric, atol=1e-8)
    numeric = gradients.central(
        lambda x: losses.supplement(x, weak, prior, uniform, *SETTINGS, form, held_labelled=labelled), labelled
    )
    np.testing.assert_array_equal(numeric, 0.0)


def test_cai(problem):
    _, _, weak, strong, prior = problem
    numeric = gradients.central(lambda x: losses.cai(weak, x, prior, *SETTINGS), strong)
    np.testing.assert_allclose(gradients.cai(weak, strong, prior, *SETTINGS), numeric, atol=1e-8)
    numeric = gradients.central(lambda x: losses.cai(x, strong, prior, *SETTINGS, held_weak=weak), weak)
    np.testing.assert_array_equal(numeric, 0.0)


def test_the_gap_has_the_derivative_of_the_authors_formula():
    """dJ/dp̃_c = (f_c / p̃_c)(1 − H / p̃_c)."""
    p, classes = np.array([0.5, 0.3, 0.2]), np.array([0, 0, 0, 2, 2])
    share = np.array([0.6, 0.0, 0.4])
    harmonic = 1.0 / (share / p).sum()
    by_log = gradients.by_log_marginal(np.log(p), classes, np.ones(5))
    np.testing.assert_allclose(by_log / p, share / p * (1.0 - harmonic / p), rtol=1e-12)


def test_differences_without_held_stop_gradients_would_be_another_gradient(problem):
    """Moving the frozen part too makes the straight-through value constant: its difference is zero, ours is not."""
    labelled, labels, weak, _, prior = problem
    moved = gradients.central(lambda x: losses.cap(labelled, labels, x, prior, "straight_through"), weak)
    np.testing.assert_allclose(moved, 0.0, atol=1e-9)
    if len(set(labels.tolist())) > 1:
        assert np.abs(gradients.cap(labelled, labels, weak, prior, "straight_through")[1]).max() > 1e-3


def test_pinv_weights_are_the_pseudo_inverse():
    rng = np.random.default_rng(0)
    for rows, classes in ((9, 4), (4, 4), (3, 7)):
        weak, prior = rng.normal(size=(rows, classes)), np.full(classes, 1.0 / classes)
        direct = np.clip(prior @ np.linalg.pinv(softmax(weak)), 0.0, 5.0)
        np.testing.assert_allclose(marginal.pinv_weights(weak, prior), direct, rtol=1e-8, atol=1e-10)
