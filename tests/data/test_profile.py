import math
from decimal import Decimal, localcontext

import pytest

from cadr.data import shuffle


@pytest.mark.parametrize(
    ("gamma", "counts"),
    [
        (20, [20, 15, 11, 8, 6, 4, 3, 2, 2, 1]),
        (50, [50, 33, 21, 14, 9, 6, 4, 3, 2, 1]),
        (100, [100, 60, 36, 22, 13, 8, 5, 3, 2, 1]),
    ],
)
def test_counts_of_the_paper_on_cifar10(gamma, counts):
    assert shuffle.ceilings(gamma, gamma, 10).tolist() == counts


@pytest.mark.parametrize(("gamma", "total"), [(50, 1317), (100, 2229), (200, 3875)])
def test_totals_of_the_paper_on_cifar100(gamma, total):
    assert shuffle.ceilings(gamma, gamma, 100).sum() == total


@pytest.mark.parametrize("gamma", [1.0, 1.5, 3.7, 20.0, 77.3, 150.0])
@pytest.mark.parametrize("n", [1, 7, 50, 1500, 5000])
def test_rounding_against_decimals_of_many_digits(n, gamma):
    with localcontext() as context:
        context.prec = 60
        for i in range(10):
            exact = n * Decimal(str(gamma)) ** (Decimal(-i) / 9)
            exact = exact.quantize(Decimal(10) ** -40)  # whole numbers become whole
            assert shuffle.ceiling(n, gamma, i, 9) == math.ceil(exact)
            assert shuffle.floor(n, gamma, i, 9) == math.floor(exact)


def test_where_floating_point_goes_wrong():
    # 5000·100^(−1) is 50 exactly; binary powers may miss it on one side or the other
    assert shuffle.ceiling(5000, 100, 9, 9) == shuffle.floor(5000, 100, 9, 9) == 50
    assert shuffle.ceiling(3000, 1000, 3, 9) == shuffle.floor(3000, 1000, 3, 9) == 300


def test_inverse_profile_is_the_profile_backwards():
    assert shuffle.ceilings(5000, 0.02, 10).tolist() == shuffle.ceilings(5000, 50, 10).tolist()[::-1]
    assert shuffle.ceilings(5000, 0.01, 10)[[0, -1]].tolist() == [50, 5000]


def test_two_classes_and_one():
    assert shuffle.ceilings(10, 5, 2).tolist() == [10, 2]
    assert shuffle.floors(10, 5, 1).tolist() == [10]
