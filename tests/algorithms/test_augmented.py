"""The class-propensity form stays bounded because both losses of a labelled row come from the same logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cadr.algorithms import CADR, Batch, Facts
from cadr.functional import cross_entropy, impute, predictions
from tests.algorithms import toy

CENTRES = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
COUNTS = torch.tensor([30, 6, 2])
STEPS = 3000


@dataclass(frozen=True)
class TwoViews(CADR):
    """What must not be done: the imputed loss of a labelled row from its strong view, the observed from its weak."""

    def augmented(self, step):
        weak, strong = step.labelled.chunk(2)
        terms = super().augmented(step._replace(labelled=weak, labels=step.labels[: len(weak)]))
        imputed = impute(predictions(weak), step.thresholds)
        loss = (imputed.mask * cross_entropy(strong, imputed.labels)).mean()
        return terms | {"supplement": -loss}  # with weights of one, which are the mildest


def _batches(*, two_views):
    random = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=random)

    labels = torch.repeat_interleave(torch.arange(3), COUNTS)
    labelled = CENTRES[labels] + 0.7 * normal(len(labels), 2)
    stream = CENTRES[torch.randint(0, 3, (600,), generator=random)] + 0.7 * normal(600, 2)
    for _ in range(STEPS):
        chosen, index = (torch.randint(0, n, (m,), generator=random) for n, m in ((38, 16), (600, 48)))
        x, y, u = labelled[chosen], labels[chosen], stream[index]
        views = [x + 0.05 * normal(16, 2)]
        if two_views:
            views, y = [*views, x + 0.6 * normal(16, 2)], y.repeat(2)
        yield Batch(torch.cat(views), y, u + 0.05 * normal(48, 2), u + 0.6 * normal(48, 2), index)


def _objectives(algorithm, *, two_views=False):
    known = Facts(3, COUNTS.float(), 638, 600, labelled_in_stream=False, steps=STEPS)
    for output, _ in toy.train(algorithm, toy.mlp(2, 3), _batches(two_views=two_views), known, lr=0.03):
        yield toy.objective(output).item()


def test_finite_and_bounded_below_for_3000_steps():
    objectives = list(_objectives(CADR(propensity="class")))
    assert len(objectives) == STEPS
    assert all(abs(value) < 10 for value in objectives)  # false for NaN too
    assert sum(objectives[-100:]) < sum(objectives[:100])
    # Observed minus imputed loss of a labelled row is never negative, nor is the imputed loss.
    assert min(objectives) > -1e-4


def test_two_views_diverge_on_the_same_problem():
    """The guard: the problem above is one on which the mistake does show."""
    assert any(not value > -100 for value in _objectives(TwoViews(propensity="class"), two_views=True))
