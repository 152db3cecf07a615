"""Anchored labels: the supervised term over all views against the oracle, the others untouched, and the reduction."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cadr.algorithms import CADR, CAPCAI, AnchoredCADR, AnchoredCAPCAI, Anchoring, FixMatch
from cadr.errors import ConfigError
from tests.algorithms.logits import array, close, gradients, run, slope, views
from tests.oracles.softmax import cross_entropy

PAIRS = [(Anchoring, FixMatch), (AnchoredCAPCAI, CAPCAI), (AnchoredCADR, CADR)]
WEAK = views()


def _with_strong(count: int):
    """The batch with `count` strong views of its labelled rows, one after another, behind the weak one."""
    strong = [views(100 + number).labelled for number in range(count)]
    return WEAK._replace(labelled=torch.cat((WEAK.labelled, *strong)))


@pytest.mark.parametrize(("anchored", "plain"), PAIRS)
@pytest.mark.parametrize("strong", [1, 3])
def test_the_supervised_term_is_the_mean_over_all_views(anchored, plain, strong):
    batch, labels = _with_strong(strong), np.tile(WEAK.labels.numpy(), 1 + strong)

    def supervised(logits):
        return cross_entropy(logits, labels)

    algorithm = anchored(threshold=0.6, labelled_views=1 + strong)
    close(run(algorithm, batch).terms["supervised"], supervised(array(batch.labelled)))
    behind = len(WEAK.labels)  # in the rows before, CADR's other terms have gradients, too
    close(gradients(algorithm, batch)["labelled"][behind:], slope(supervised, batch.labelled)[behind:])


@pytest.mark.parametrize(("anchored", "plain"), PAIRS)
def test_all_other_terms_see_the_weak_view_alone(anchored, plain):
    ours, base = run(anchored(threshold=0.6), _with_strong(1)), run(plain(threshold=0.6), WEAK)
    assert ours.terms.keys() == base.terms.keys()
    for name in base.terms:
        assert torch.equal(ours.terms[name], base.terms[name]) == (name != "supervised")
    assert torch.equal(ours.pseudo, base.pseudo)
    assert torch.equal(ours.mask, base.mask)


@pytest.mark.parametrize(("anchored", "plain"), PAIRS)
def test_one_view_is_the_method_without_anchors(anchored, plain):
    ours, base = run(anchored(threshold=0.6, labelled_views=1), WEAK), run(plain(threshold=0.6), WEAK)
    for name in base.terms:
        assert torch.equal(ours.terms[name], base.terms[name])


def test_what_is_refused():
    with pytest.raises(ConfigError, match="labelled_views"):
        Anchoring(labelled_views=0)
    with pytest.raises(ConfigError, match="propensity"):
        AnchoredCADR(propensity="class")
