"""PRG in both variants: its transition matrix against a plain loop, predictions and gradients against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.algorithms import PRG, FixMatch, PRGLast
from cadr.errors import ConfigError
from tests.algorithms.logits import FACTS, array, close, gradients, run, slope, views
from tests.oracles import rivals
from tests.oracles.softmax import Array, Indices, log_softmax, softmax

STEPS, KEPT = 25, 8


def _batches(steps=STEPS):
    """Examples come back, and their predictions drift: towards class 0."""
    for step in range(steps):
        batch = views(step, unlabelled=120, step=step)
        yield batch._replace(weak=batch.weak + torch.tensor([0.1 * step, 0.0, 0.0, -1.0]))


@pytest.mark.parametrize("kind", [PRG, PRGLast])
def test_against_a_plain_loop(kind):
    algorithm = kind(batches=KEPT, threshold=0.8, alpha=2.0)
    state = algorithm.init(FACTS)
    history: list[tuple[Indices, Indices]] = []
    means: list[Array] = []
    for batch in _batches():
        predicted = softmax(array(batch.weak))
        now = (batch.index.numpy(), predicted.argmax(1))
        known = rivals.transitions(history, 4, KEPT)[1]
        before = [known.get(i, -1) for i in batch.index.tolist()]
        if kind is PRG:  # with this batch counted, by the class predicted now
            history, means = [*history, now], [*means, predicted.mean(0)]
        moves, last = rivals.transitions(history, 4, KEPT) if history else (np.zeros((4, 4)), {})
        mean = np.sum(means[-KEPT:], axis=0) / KEPT if means else np.ones(4)
        h = rivals.guidance(moves, mean, 2.0)
        rectified = rivals.rectify(predicted, now[1].tolist() if kind is PRG else before, h)

        output = run(algorithm, batch, state)
        pseudo, used = rectified.argmax(1), rectified.max(1) > 0.8
        assert output.pseudo.tolist() == pseudo.tolist()
        assert output.mask.tolist() == used.tolist()

        def loss(strong, pseudo=pseudo, used=used):
            return float(np.mean(used * [-log_softmax(strong)[i, c] for i, c in enumerate(pseudo)]))

        close(output.terms["unlabelled"], loss(array(batch.strong)))
        state = output.state
        if kind is PRGLast:
            history, means = [*history, now], [*means, predicted.mean(0)]
        moves, last = rivals.transitions(history, 4, KEPT)
        close(state["transitions"].mean(0), moves)
        assert {i: c for i, c in enumerate(state["last"].tolist()) if c >= 0} == last
    assert moves.sum() > 1
    assert (pseudo != now[1]).any()  # the guidance did change somebody's label
    assert 0 < used.sum() < len(used)


def test_gradients():
    batch = next(iter(_batches(1)))
    for kind in (PRG, PRGLast):
        algorithm = kind(threshold=0.8)
        output = run(algorithm, batch)

        def loss(strong, output=output):
            rows = [-log_softmax(strong)[i, c] for i, c in enumerate(output.pseudo.tolist())]
            return float(np.mean(array(output.mask) * rows))

        found = gradients(algorithm, batch)
        close(found["strong"], slope(loss, batch.strong))
        assert not found["weak"].any()


def test_without_transitions_every_prediction_is_certain():
    """H is diagonal: PRG is FixMatch without a threshold, and PRG (last) repeats the class it had."""
    batch = views()
    ours, base = run(PRG(), batch), run(FixMatch(threshold=0.0), batch)
    assert torch.equal(ours.pseudo, base.pseudo)
    assert torch.equal(ours.mask, base.mask)
    assert torch.equal(ours.terms["unlabelled"], base.terms["unlabelled"])
    algorithm = PRGLast(threshold=0.8)
    first = run(algorithm, batch)  # nobody has been seen: FixMatch
    plain = run(FixMatch(threshold=0.8), batch)
    assert torch.equal(first.mask, plain.mask)
    assert torch.equal(first.pseudo, plain.pseudo)
    again = run(algorithm, batch._replace(weak=batch.weak.flip(1), step=torch.tensor(1)), first.state)
    assert torch.equal(again.pseudo, plain.pseudo)
    assert again.mask.all()


def test_the_oldest_batch_is_forgotten():
    algorithm = PRG(batches=3)
    state = algorithm.init(FACTS)
    for step, batch in enumerate(_batches(9)):
        state = run(algorithm, batch, state).state
        assert (state["means"].sum(1) > 0).sum() == min(step + 1, 3)
    assert algorithm.init(FACTS)["transitions"].shape == (3, 4, 4)


@pytest.mark.parametrize(("field", "value"), [("alpha", -1.0), ("batches", 0)])
def test_settings_out_of_range_are_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        PRG(**{field: value})
