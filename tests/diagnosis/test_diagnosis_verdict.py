"""What a diagnosis says first: it names only what the intervals separate, and admits when nothing can be said."""

from __future__ import annotations

import pytest

from cadr.diagnosis.diagnose import diagnose
from cadr.diagnosis.result import ClassDiagnosis, Diagnosis, flag_of
from tests.diagnosis.test_diagnosis import blobs
from tests.diagnosis.test_diagnosis_single import noise

UNLABELLED = 1000


def diagnosis(*classes, p_value=0.001, recall=0.9):
    """Of (name, labels, share, low, high) of each class."""
    total = sum(labels for _, labels, *_ in classes)
    made = tuple(
        ClassDiagnosis(
            name=name,
            labels=labels,
            labelled_share=labels / total,
            flag=flag_of(labels),
            share=share,
            share_interval=(low, high),
            propensity=labels / (labels + UNLABELLED * share),
            propensity_interval=(labels / (labels + UNLABELLED * high), labels / (labels + UNLABELLED * low)),
            prior=share,
            recall=recall,
        )
        for name, labels, share, low, high in classes
    )
    return Diagnosis("d", total, UNLABELLED, made, 9.0, p_value, recall, 0.5, 0.6, 0.1, 0.2, 0)


def test_classes_whose_intervals_overlap_are_not_named():
    """Two and three labels: "A is labelled about 63 times less often than B", where the truth was 4.1 and 4.9 %."""
    found = diagnosis(("A", 2, 0.3, 0.0001, 0.9), ("B", 3, 0.005, 0.0001, 0.4), ("C", 30, 0.7, 0.3, 0.99))
    assert found.apart is None
    assert found.propensity_ratio == pytest.approx((3 / 8) / (2 / 302))
    assert found.verdict.startswith(
        "Labels are NOT missing at random (p = 0.001), but the intervals of the classes ove"
    )
    assert "class A" not in found.verdict
    assert "largest over smallest propensity" not in str(found)


def test_the_pair_that_the_intervals_separate_is_named_though_another_is_farther_apart_by_its_estimates():
    found = diagnosis(("A", 2, 0.4, 0.001, 0.9), ("B", 5, 0.4, 0.35, 0.45), ("C", 80, 0.2, 0.15, 0.25))
    least, most, at_least = found.apart
    assert (least.name, most.name) == ("B", "C")
    # three intervals at once: 2.128/1.645 times as wide
    low, high = 0.2 + 0.05 * 2.128 / 1.645, 0.4 + 0.05 * 2.128 / 1.645
    assert at_least == pytest.approx((80 / (80 + 1000 * low)) / (5 / (5 + 1000 * (0.4 - (high - 0.4)))), rel=1e-3)
    assert "class B is labelled about 23 (at least " in found.verdict


def test_the_extremes_are_named_where_their_intervals_are_apart():
    found = diagnosis(("A", 4, 0.4, 0.3, 0.5), ("B", 40, 0.3, 0.29, 0.31), ("C", 80, 0.3, 0.25, 0.35))
    assert [c.name for c in found.apart[:2]] == ["A", "C"] == [c.name for c in found.extremes]
    assert "largest over smallest propensity 21.3" in str(found)


def test_no_sign_says_what_bias_is_possible():
    found = diagnosis(("A", 20, 0.5, 0.4, 0.6), ("B", 20, 0.5, 0.4, 0.6), p_value=0.5)
    first, second = found.verdict.split(". ")
    half = 0.1 * 1.96 / 1.645
    allowed = (20 / (20 + 1000 * (0.5 - half))) / (20 / (20 + 1000 * (0.5 + half)))
    assert first.endswith(f"though one class may be labelled {allowed:.1f} times as often as another")
    assert "may be used" in second


def test_features_that_tell_no_classes_apart_are_said_first():
    """The labels were biased 25 : 1, and the first sentence was that there is no sign of it."""
    found = diagnose(noise([50, 2]))
    assert found.p_value > 0.05
    assert found.verdict.startswith("Nothing can be said of how labels are missing: the classes can hardly be told ap")
    assert "no sign" not in str(found)


def test_a_bias_in_features_that_hardly_tell_classes_apart_names_no_class():
    found = diagnosis(("A", 4, 0.4, 0.3, 0.5), ("B", 80, 0.6, 0.5, 0.7), recall=0.6)
    assert found.weak
    assert found.verdict.split(". ")[0] == "Labels are NOT missing at random (p = 0.001)"


@pytest.mark.parametrize("seed", range(3))
def test_what_is_named_is_true(seed):
    counts = [60, 30, 12, 3, 2]
    found = diagnose(blobs(counts, seed=seed))
    assert found.apart is not None
    least, most, at_least = found.apart
    assert (
        at_least <= counts[int(most.name[-1])] / counts[int(least.name[-1])]
    )  # the unlabelled rows are as many of each
