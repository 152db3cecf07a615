"""The Π-model, MixMatch and ReMixMatch against their oracles, and what settings leave of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from cadr.algorithms import Batch, Facts, MixMatch, PiModel, ReMixMatch, Supervised
from cadr.algorithms.mixing import mixup
from cadr.algorithms.remixmatch import turn
from cadr.errors import ConfigError
from cadr.training.network import Network
from cadr.utils import random_numbers
from tests.algorithms import toy
from tests.functional.problems import close
from tests.oracles import mixing
from tests.oracles.gradients import central

B, U, CLASSES = 5, 6, 3
FACTS = Facts(CLASSES, torch.tensor([9.0, 3.0, 1.0]), 1000, 1000, labelled_in_stream=True, steps=100)
UNTURNED = ("unlabelled", "unmixed")  # terms of ReMixMatch with a weight that rises
KEY, STEP = random_numbers.key(3, torch.tensor(8), 4), torch.tensor(10)


class Problem:
    """Random views in float64, and a linear model on them."""

    def __init__(self, algorithm, shape=(4,), outputs=CLASSES, seed=0):
        random = torch.Generator().manual_seed(seed)

        def normal(*size):
            return torch.randn(*size, generator=random, dtype=torch.float64)

        self.algorithm = algorithm
        views = normal(B, *shape), normal(algorithm.weak_views * U, *shape), normal(algorithm.strong_views * U, *shape)
        labels = torch.randint(0, CLASSES, (B,), generator=random)
        self.batch = Batch(views[0], labels, views[1], views[2], torch.arange(U), KEY, STEP)
        self.W = normal(int(np.prod(shape)), outputs)
        self.state = {name: value.double() for name, value in algorithm.init(FACTS).items()}

    def run(self):
        """The output, and the gradient of the objective by W."""
        W = self.W.clone().requires_grad_()
        output = self.algorithm.loss(lambda x: x.flatten(1) @ W, self.batch, self.state)
        (gradient,) = torch.autograd.grad(toy.objective(output), W)
        return output, gradient

    def arrays(self):
        batch = self.batch
        return batch.labelled.numpy(), batch.labels.numpy(), batch.weak.numpy(), batch.strong.numpy(), self.W.numpy()


def _mixing(rows, alpha):
    """What `mixup` draws, in float64."""
    by_share, by_partner = random_numbers.split(KEY, 2)
    drawn = random_numbers.beta(by_share, alpha, alpha, rows)
    return random_numbers.permutation(by_partner, rows).tolist(), torch.maximum(drawn, 1 - drawn).double().tolist()


def test_pi_model():
    problem = Problem(PiModel(ramp=0.4))  # at step 10 of 100 the weight is a quarter
    labelled, labels, weak, _, W = problem.arrays()

    def value(W, held):
        return mixing.pi_model(labelled, labels, weak[:U], weak[U:], W, held, 2.5)

    output, gradient = problem.run()
    close(toy.objective(output), value(W, W), rtol=1e-6)
    close(gradient, central(lambda x: value(x, W), W), rtol=1e-6, atol=1e-8)
    assert not np.allclose(gradient, central(lambda x: value(x, x), W), rtol=1e-3)  # the first view has no gradient


def test_mixmatch():
    problem = Problem(MixMatch(weak_views=3, ramp=0.2, lambda_u=80.0, temperature=0.7, momentum=0.8))
    labelled, labels, weak, _, W = problem.arrays()
    partners, shares = _mixing(B + 3 * U, 0.5)

    def value(W, held):
        return mixing.mixmatch(labelled, labels, np.split(weak, 3), W, held, partners, shares, 0.7, 40.0)

    output, gradient = problem.run()
    close(toy.objective(output), value(W, W), rtol=1e-6)
    close(gradient, central(lambda x: value(x, W), W), rtol=1e-6, atol=1e-7)
    assert not np.allclose(gradient, central(lambda x: value(x, x), W), rtol=1e-3)
    first = (problem.batch.weak[:U] @ problem.W).softmax(1).mean(0)
    close(output.prior, (0.8 / CLASSES + 0.2 * first).numpy(), rtol=1e-6)  # it begins in fp32


@pytest.mark.parametrize("alignment", ["labelled", "uniform", "given"])
def test_remixmatch(alignment):
    given = (1.0, 1.0, 2.0) if alignment == "given" else ()
    algorithm = ReMixMatch(strong_views=2, ramp=0.2, temperature=0.6, alignment=alignment, target_prior=given)
    problem = Problem(algorithm, shape=(1, 3, 3), outputs=CLASSES + 4)
    recent = torch.rand(128, CLASSES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    problem.state["recent"] = recent / recent.sum(1, keepdim=True)
    if alignment == "labelled":
        problem.state["target"] = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    labelled, labels, weak, strong, W = problem.arrays()
    target, mean = problem.state["target"].numpy(), problem.state["recent"].mean(0).numpy()
    partners, shares = _mixing(B + 3 * U, 0.75)

    def values(W, held):
        views = np.split(strong, 2)
        return mixing.remixmatch(
            labelled, labels, weak, views, W, held, partners, shares, target, mean, 0.6, (0.75, 0.25, 0.5)
        )

    output, gradient = problem.run()
    assert list(output.terms) == ["supervised", "unlabelled", "unmixed", "rotation"]
    for term, expected in zip(output.terms.values(), values(W, W), strict=True):
        close(term, expected, rtol=1e-6)
    close(gradient, central(lambda x: sum(values(x, W)), W), rtol=1e-6, atol=1e-7)
    expected_target = {"labelled": 0.999 * target + 0.001 * np.bincount(labels, minlength=3) / B}.get(alignment, target)
    close(output.state["target"], expected_target, atol=1e-7)
    assert torch.equal(output.state["recent"][:-1], problem.state["recent"][1:])
    logits = torch.from_numpy(weak).flatten(1) @ problem.W
    close(output.state["recent"][-1], logits[:, :3].softmax(1).mean(0).numpy())


def test_the_published_alignment_starts_uniform_and_learns_the_labels():
    state = ReMixMatch().init(FACTS)
    assert state["target"].tolist() == pytest.approx([1 / 3] * 3)
    assert ReMixMatch(alignment="given", target_prior=(1, 1, 2)).init(FACTS)["target"].tolist() == [0.25, 0.25, 0.5]


# Reductions: with nothing mixed and no weight on the unlabelled, supervised training is left.


@pytest.mark.parametrize(
    "algorithm",
    [
        PiModel(lambda_u=0.0),
        MixMatch(lambda_u=0.0, alpha=0.0),
        ReMixMatch(lambda_u=0.0, lambda_u1=0.0, lambda_r=0.0, alpha=0.0, strong_views=1),
    ],
)
def test_without_weight_and_mixing_a_method_is_supervised(algorithm):
    views = toy.batch(algorithm=algorithm)
    gradients = []
    for method in (algorithm, Supervised()):
        model = toy.mlp(5, 4)
        output = method.loss(model, views, method.init(toy.facts()))
        gradients.append(torch.autograd.grad(toy.objective(output), list(model.parameters()), materialize_grads=True))
        torch.testing.assert_close(toy.objective(output), output.terms["supervised"])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    ("method", "term"),
    [(PiModel(), "unlabelled"), (MixMatch(), "unlabelled"), *((ReMixMatch(lambda_r=0.0), t) for t in UNTURNED)],
)
def test_a_weight_rises_over_its_share_of_training(method, term):
    views, model = toy.batch(algorithm=method), toy.mlp(5, 4)

    def weighed(step, share):
        algorithm = dataclasses.replace(method, ramp=share)
        state = algorithm.init(toy.facts())  # of 100 steps
        return algorithm.loss(model, views._replace(step=torch.tensor(step)), state).terms[term].detach()

    assert weighed(0, 0.4) == 0
    torch.testing.assert_close(2 * weighed(20, 0.4), weighed(40, 0.4))
    assert weighed(90, 0.4) == weighed(40, 0.4) == weighed(0, 0.0) > 0


def test_mixing_keeps_a_row_mostly_itself():
    rows, targets = torch.eye(400), torch.eye(400)
    mixed, mixed_targets = mixup(rows, targets, KEY, 0.75)
    assert torch.equal(mixed, mixed_targets)
    torch.testing.assert_close(mixed.sum(1), torch.ones(400))
    assert (mixed.diagonal() >= 0.5).all()
    assert (mixed.diagonal() < 0.99).sum() > 200
    assert all(a is b for a, b in zip(mixup(rows, targets, KEY, 0.0), (rows, targets), strict=True))


def test_mixed_images_lie_in_memory_as_views_do():
    images = torch.randn(6, 3, 4, 4).to(torch.bfloat16).to(memory_format=torch.channels_last)
    mixed, _ = mixup(images, torch.eye(6), KEY, 0.75)
    assert mixed.dtype == torch.bfloat16
    for x in (mixed, turn(images)[0]):
        assert x.is_contiguous(memory_format=torch.channels_last)


def test_turns_are_told_apart():
    image = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    turned, turns = turn(image.repeat(5, 1, 1, 1))
    assert turns.tolist() == [0, 0, 1, 2, 3]
    assert [t.flatten().tolist() for t in turned[1:]] == [[1, 2, 3, 4], [2, 4, 1, 3], [4, 3, 2, 1], [3, 1, 4, 2]]


@pytest.mark.parametrize("statistics", ["joint", "labelled"])
def test_the_labelled_alone_may_move_the_running_statistics(statistics):
    algorithm = PiModel(statistics=statistics)
    model, alone = toy.mlp(5, 4), toy.mlp(5, 4)
    views = toy.batch(algorithm=algorithm)
    toy.objective(algorithm.loss(Network(model, half=False), views, algorithm.init(toy.facts()))).backward()
    alone(views.labelled)
    assert torch.equal(model[1].running_mean, alone[1].running_mean) == (statistics == "labelled")
    assert int(model[1].num_batches_tracked) == 1


def test_guessing_leaves_the_running_statistics_alone():
    algorithm = MixMatch(alpha=0.0)
    model, alone = toy.mlp(5, 4), toy.mlp(5, 4)
    views = toy.batch(algorithm=algorithm)
    algorithm.loss(Network(model, half=False), views, algorithm.init(toy.facts()))
    alone(torch.cat((views.labelled, views.weak)))
    assert torch.equal(model[1].running_var, alone[1].running_var)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (PiModel, "statistics", "mine"),
        (PiModel, "ramp", 1.5),
        (MixMatch, "temperature", 0.0),
        (MixMatch, "alpha", -1.0),
        (MixMatch, "weak_views", 0),
        (ReMixMatch, "strong_views", 0),
        (ReMixMatch, "alignment", "none"),
        (ReMixMatch, "target_prior", (0.5, 0.5)),
        (ReMixMatch, "lambda_r", -1.0),
    ],
)
def test_settings_out_of_range_are_refused(kind, field, value):
    with pytest.raises(ConfigError, match=field):
        kind(**{field: value})
