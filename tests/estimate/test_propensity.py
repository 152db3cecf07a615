"""Class propensities from counts and a class marginal."""

from __future__ import annotations

import pytest
import torch

from cadr.estimate.aipw import class_propensity, class_weights, effective_sample_size

IN, OUT = torch.tensor(1.0), torch.tensor(0.0)


@pytest.mark.parametrize("inside", [True, False])
def test_exact_when_the_marginal_of_the_stream_is_exact(inside):
    """Count a made-up population by hand, with and without the labelled rows in the stream."""
    rows, labelled = torch.tensor([5000.0, 3000.0, 40.0]), torch.tensor([50.0, 300.0, 40.0])
    stream = rows if inside else rows - labelled
    estimate = class_propensity(labelled, stream / stream.sum(), stream.sum(), IN if inside else OUT)
    torch.testing.assert_close(estimate, labelled / rows)


def test_wrong_form_is_wrong():
    """Guards the test above: the two forms do differ once a good share of a class is labelled."""
    labelled, prior = torch.tensor([50.0, 50.0]), torch.tensor([0.5, 0.5])
    inside, outside = (class_propensity(labelled, prior, torch.tensor(200.0), flag) for flag in (IN, OUT))
    torch.testing.assert_close(inside, torch.full((2,), 50 / 100))
    torch.testing.assert_close(outside, torch.full((2,), 50 / 150))


def test_clipped_to_probabilities():
    counts, prior = torch.tensor([10.0, 1.0, 0.0, 5.0]), torch.tensor([0.001, 0.999, 1e-12, 0.0])
    estimate = class_propensity(counts, prior, torch.tensor(1000.0), IN, floor=0.01)
    torch.testing.assert_close(estimate, torch.tensor([1.0, 0.01, 0.01, 1.0]))


def test_weights_average_to_one_over_the_labelled_rows():
    counts, propensity = torch.tensor([90.0, 9.0, 1.0, 0.0]), torch.tensor([0.5, 0.05, 0.01, 1e-5])
    weights = class_weights(propensity, counts)
    torch.testing.assert_close((weights * counts).sum() / counts.sum(), torch.tensor(1.0))
    torch.testing.assert_close(weights[1] / weights[0], torch.tensor(10.0))


def test_a_class_that_nobody_labelled_has_no_weight():
    """Also when nothing keeps its propensity above zero."""
    counts = torch.tensor([30.0, 10.0, 0.0])
    propensity = class_propensity(counts, torch.full((3,), 1 / 3), torch.tensor(900.0), IN, floor=0.0)
    assert propensity[2] == 0
    torch.testing.assert_close(class_weights(propensity, counts), torch.tensor([2 / 3, 2.0, 0.0]))


def test_uniform_labelling_needs_no_weights():
    counts = torch.tensor([40.0, 20.0, 10.0])
    propensity = class_propensity(counts, counts / 70, torch.tensor(7000.0), IN)
    torch.testing.assert_close(class_weights(propensity, counts), torch.ones(3))


def test_effective_sample_size():
    torch.testing.assert_close(effective_sample_size(torch.full((12,), 3.0)), torch.tensor(12.0))
    torch.testing.assert_close(effective_sample_size(torch.tensor([1.0, 0.0, 0.0])), torch.tensor(1.0))
    torch.testing.assert_close(effective_sample_size(torch.tensor([3.0, 1.0])), torch.tensor(1.6))
