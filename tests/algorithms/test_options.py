"""What every field does, on logits given directly (the model is the identity)."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from cadr.algorithms import ALGORITHMS, CADR, CAI, CAP, CAPCAI, Batch, Facts, FixMatch
from cadr.errors import ConfigError

PRIOR = torch.tensor([0.5, 0.3, 0.15, 0.05])
COUNTS = torch.tensor([50.0, 20.0, 8.0, 2.0])
FACTS = Facts(4, COUNTS, num_examples=1080, num_unlabelled=1000, labelled_in_stream=False, steps=10)


def _views(seed=0, labelled=12, unlabelled=40):
    random = torch.Generator().manual_seed(seed)
    logits = 2.5 * torch.randn(labelled + 2 * unlabelled, 4, generator=random)
    labels = torch.randint(0, 4, (labelled,), generator=random)
    weak, strong = logits[labelled:].split(unlabelled)
    return Batch(logits[:labelled], labels, weak, strong, torch.arange(unlabelled))


VIEWS = _views()


def _output(algorithm, facts=FACTS):
    state = algorithm.init(facts)
    state["prior"] = PRIOR
    return algorithm.loss(lambda x: x, VIEWS, state)


def _new_prior(momentum=0.99):
    return momentum * PRIOR + (1 - momentum) * F.softmax(VIEWS.weak, 1).mean(0)


def test_thresholds_come_from_the_prior_after_the_update():
    new = _new_prior(0.5)
    output = _output(CAI(momentum=0.5))
    torch.testing.assert_close(output.thresholds, 0.95 * (new / new.max()) ** 0.5)
    old = 0.95 * (PRIOR / PRIOR.max()) ** 0.5
    assert (output.thresholds - old).abs().max() > 0.05


def test_thresholds_from_the_distribution_of_the_labels():
    expected = 0.95 * (COUNTS / COUNTS.max()) ** 0.7
    torch.testing.assert_close(_output(CAI(threshold_prior="label", beta=0.7)).thresholds, expected)


def test_threshold_floor():
    free, floored = _output(CAI()).thresholds, _output(CAI(threshold_floor=0.5)).thresholds
    assert free.min() < 0.5
    torch.testing.assert_close(floored, free.clamp(min=0.5))


def test_lambda_u_scales_the_unlabelled_term_alone():
    one, three = _output(CADR(threshold=0.6)).terms, _output(CADR(threshold=0.6, lambda_u=3.0)).terms
    assert one["unlabelled"] > 0
    torch.testing.assert_close(three["unlabelled"], 3 * one["unlabelled"])
    for name in ("supervised", "propensity", "supplement"):
        assert torch.equal(one[name], three[name])


def test_unlabelled_loss_is_the_mean_over_all_rows():
    output = _output(FixMatch(threshold=0.8))
    total = 0.0
    for weak, strong in zip(VIEWS.weak.double(), VIEWS.strong.double(), strict=True):
        if F.softmax(weak, 0).max() > 0.8:
            total -= float(F.log_softmax(strong, 0)[weak.argmax()])
    assert 0 < output.mask.sum() < 40
    assert float(output.terms["unlabelled"]) == pytest.approx(total / 40, rel=1e-5)


def test_confidence_equal_to_the_threshold_is_not_enough():
    tie = torch.tensor([[0.0, 0.0, -200.0, -200.0]])  # a confidence of exactly one half
    views = Batch(VIEWS.labelled, VIEWS.labels, tie.expand(8, 4), VIEWS.strong[:8], torch.arange(8))
    for algorithm in (FixMatch(threshold=0.5), CAI(threshold=0.5, beta=0.0)):
        assert algorithm.loss(lambda x: x, views, algorithm.init(FACTS)).mask.sum() == 0
    lower = FixMatch(threshold=0.499)
    assert lower.loss(lambda x: x, views, lower.init(FACTS)).mask.sum() == 8


def test_soft_pseudo_labels():
    output = _output(FixMatch(threshold=0.8, pseudo_labels="soft"))
    rows = -(F.softmax(VIEWS.weak, 1) * F.log_softmax(VIEWS.strong, 1)).sum(1)
    torch.testing.assert_close(output.terms["unlabelled"], (output.mask * rows).mean())


@pytest.mark.parametrize("alignment", ["uniform", "given"])
def test_alignment(alignment):
    given = (0.1, 0.2, 0.3, 0.4)
    algorithm = FixMatch(threshold=0.6, alignment=alignment, target_prior=given if alignment == "given" else ())
    output = _output(algorithm)
    target = torch.tensor(given) if alignment == "given" else torch.full((4,), 0.25)
    aligned = F.softmax(VIEWS.weak, 1) * (target + 1e-6) / (_new_prior() + 1e-6)
    aligned /= aligned.sum(1, keepdim=True)
    assert torch.equal(output.pseudo, aligned.argmax(1))
    assert torch.equal(output.mask, (aligned.max(1).values > 0.6).float())
    assert not torch.equal(output.pseudo, VIEWS.weak.argmax(1))


def test_target_prior_is_where_cap_comes_to_rest():
    """J is zero, with zero gradient, when the marginal equals the target; and only then."""
    at_rest = CAP(target_prior=tuple(PRIOR.tolist()))
    weak = VIEWS.weak.clone().requires_grad_()
    for algorithm, rests in ((at_rest, True), (CAP(), False)):
        state = algorithm.init(FACTS)
        state["prior"] = PRIOR
        term = algorithm.loss(lambda x: x, VIEWS._replace(weak=weak), state).terms["propensity"]
        (gradient,) = torch.autograd.grad(term, weak)
        assert (abs(float(term.detach())) < 1e-6) == rests
        assert (gradient.abs().max() < 1e-7) == rests


def test_target_prior_divides_the_marginal():
    given = torch.tensor([0.1, 0.2, 0.3, 0.4])
    ratio = (PRIOR / given)[VIEWS.labels].double()
    expected = ratio.log().mean() + (1 / ratio).mean().log()
    output = _output(CAP(target_prior=(1.0, 2.0, 3.0, 4.0)))  # need not be normalised
    assert float(output.terms["propensity"]) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("method", [CAPCAI, CADR])
def test_thresholds_follow_predictions_relative_to_the_target(method):
    """A class that is predicted as rarely as it is rare needs no lower threshold."""
    given = torch.tensor([0.1, 0.2, 0.3, 0.4])
    ratio = _new_prior() / given
    expected = 0.95 * (ratio / ratio.max()) ** 0.5
    torch.testing.assert_close(_output(method(target_prior=(1.0, 2.0, 3.0, 4.0))).thresholds, expected)
    at_rest = _output(method(target_prior=tuple(_new_prior().tolist()))).thresholds
    torch.testing.assert_close(at_rest, torch.full((4,), 0.95))
    assert torch.equal(_output(method(target_prior=(0.25,) * 4)).thresholds, _output(method()).thresholds)


def test_cap_without_the_normaliser_is_the_mean_log_marginal():
    term = _output(CAP(normaliser="none")).terms["propensity"]
    torch.testing.assert_close(term, PRIOR[VIEWS.labels].log().mean())
    assert term < 0 < _output(CAP()).terms["propensity"]


@pytest.mark.parametrize("form", ["straight_through", "batch", "pinv"])
def test_forms(form):
    output = _output(CAP(form=form))
    marginal = F.softmax(VIEWS.weak, 1).mean(0) if form == "batch" else PRIOR
    if form == "pinv":
        predictions = F.softmax(VIEWS.weak.double(), 1)
        marginal = (PRIOR.double() @ torch.linalg.pinv(predictions)).clamp(0, 5) @ predictions
    rows = marginal[VIEWS.labels].double()
    expected = rows.log().mean() + (1 / rows).mean().log()
    assert float(output.terms["propensity"]) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("normaliser", ["jensen", "none"])
@pytest.mark.parametrize("choice", ["class_aware", "fixed"])
def test_supplement_threshold(choice, normaliser):
    output = _output(CADR(threshold=0.9, supplement_threshold=choice, normaliser=normaliser))
    predicted = F.softmax(VIEWS.labelled, 1)
    new = _new_prior()
    limits = 0.9 * (new / new.max()) ** 0.5 if choice == "class_aware" else torch.full((4,), 0.9)
    classes = predicted.argmax(1)
    used = predicted.max(1).values > limits[classes]
    marginal = PRIOR[classes]
    rows = marginal.log()
    if normaliser == "jensen":
        rows = rows + (1 / marginal).mean().log()  # over all rows, used or not
    torch.testing.assert_close(output.terms["supplement"], -rows[used].sum() / 12)
    fixed = predicted.max(1).values > 0.9
    assert 0 < fixed.sum() < (predicted.max(1).values > (0.9 * (new / new.max()) ** 0.5)[classes]).sum()


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(("pseudo_labels", "weight"), [("hard", 1.0), ("soft", 3.0)])
def test_class_propensity_form_by_hand(inside, pseudo_labels, weight):
    """The augmented risk from scratch: population shares, φ_c by counting, both losses of a labelled row alike."""
    facts = dataclasses.replace(FACTS, num_unlabelled=1080 if inside else 1000, labelled_in_stream=inside)
    algorithm = CADR(threshold=0.6, propensity="class", pseudo_labels=pseudo_labels, lambda_u=weight)
    output = _output(algorithm, facts)
    new = _new_prior()
    rows = 1080 * new if inside else COUNTS + 1000 * new
    weights = rows / COUNTS
    weights = weights / ((weights * COUNTS).sum() / COUNTS.sum())
    limits = 0.6 * (new / new.max()) ** 0.5

    def imputed(given, taught):
        predicted = F.softmax(given, 1)
        confidence, classes = predicted.max(1)
        targets = classes if pseudo_labels == "hard" else predicted
        return weight * (confidence > limits[classes]) * F.cross_entropy(taught, targets, reduction="none")

    on_labelled = imputed(VIEWS.labelled, VIEWS.labelled)
    observed = F.cross_entropy(VIEWS.labelled, VIEWS.labels, reduction="none")
    population = imputed(VIEWS.weak, VIEWS.strong).mean()
    if not inside:
        population = (1000 * population + 80 * on_labelled.mean()) / 1080
    expected = population + (weights[VIEWS.labels] * (observed - on_labelled)).mean()
    torch.testing.assert_close(torch.stack(list(output.terms.values())).sum(), expected)


def test_propensity_floor_limits_the_weights():
    free, floored = (_output(CADR(propensity="class", propensity_floor=f)).terms["supervised"] for f in (0.0, 1.0))
    plain = F.cross_entropy(VIEWS.labelled, VIEWS.labels)
    torch.testing.assert_close(floored, plain)  # all propensities are one: no weights are left
    assert abs(float(free - plain)) > 0.05


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_field_has_help(name):
    for field in dataclasses.fields(ALGORITHMS[name]):  # type: ignore[arg-type]
        assert field.metadata.get("help", "").endswith("."), field.name


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (FixMatch, "threshold", 1.2),
        (FixMatch, "pseudo_labels", "firm"),
        (FixMatch, "alignment", "given"),  # but no target
        (FixMatch, "target_prior", (0.5, 0.5)),  # but no alignment
        (CAP, "momentum", 1.01),
        (CAP, "form", "exact"),
        (CAPCAI, "normaliser", "softmax"),
        (CAI, "beta", -0.1),
        (CAI, "threshold_floor", 2.0),
        (CAI, "threshold_prior", "guess"),
        (CADR, "propensity", "score"),
        (CADR, "propensity_floor", -1.0),
        (CADR, "supplement_threshold", "none"),
    ],
)
def test_settings_out_of_range_are_refused(kind, field, value):
    with pytest.raises(ConfigError, match=field):
        kind(**{field: value})


@pytest.mark.parametrize(("target", "said"), [((0.5, 0.5), "one number per class"), ((0.5, 0.5, 0.0, 0.1), "positive")])
def test_target_prior_must_fit_the_classes(target, said):
    with pytest.raises(ConfigError, match=said):
        CAP(target_prior=target).init(FACTS)
