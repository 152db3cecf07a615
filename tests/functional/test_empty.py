"""A batch without rows has no mean: a sentence, and never a NaN that P̂ would keep."""

import pytest
import torch

from cadr import functional
from cadr.errors import DataError

PRIOR = torch.full((3,), 1 / 3)
NONE, SOME = torch.zeros(0, 3), torch.zeros(2, 3)
NO_LABELS, LABELS = torch.zeros(0, dtype=torch.long), torch.tensor([0, 2])
FORMS = ("straight_through", "batch", "pinv")


@pytest.mark.parametrize("form", FORMS)
def test_without_unlabelled_rows(form):
    for call in (
        lambda: functional.cap(SOME, LABELS, NONE, PRIOR, form),
        lambda: functional.supplement(SOME, NONE, PRIOR, PRIOR, form=form),
        lambda: functional.cadr(SOME, LABELS, NONE, NONE, PRIOR, form=form),
        lambda: functional.cai(NONE, NONE, PRIOR),
        lambda: functional.update_prior(PRIOR, NONE),
    ):
        with pytest.raises(DataError, match="no row in logits_weak"):
            call()


@pytest.mark.parametrize("form", FORMS)
def test_without_labelled_rows(form):
    for call in (
        lambda: functional.cap(NONE, NO_LABELS, SOME, PRIOR, form),
        lambda: functional.supplement(NONE, SOME, PRIOR, PRIOR, form=form),
        lambda: functional.cadr(NONE, NO_LABELS, SOME, SOME, PRIOR, form=form),
    ):
        with pytest.raises(DataError, match="no row in the labelled batch"):
            call()


def test_a_risk_of_nothing():
    nothing = torch.zeros(0)
    with pytest.raises(DataError, match="no row in the losses"):
        functional.aipw(nothing, nothing, nothing, nothing)
