"""How long a run will take: as long as steps with these times would."""

import pytest

from cadr.training.clock import seconds_left


class Steps:
    """Steps that all take as long, but for the first; to begin takes time as well."""

    def __init__(self, step, begin=0.0, first=5.0):
        self.step, self.begin, self.first, self.taken = step, begin, first, []

    def go(self, n):
        slow = 0.0 if self.taken else self.first
        self.taken.append(n)
        return self.begin + n * self.step + slow


def test_short_steps_are_told_from_what_it_takes_to_begin():
    steps = Steps(0.005, begin=0.005)
    assert seconds_left(steps.go, 1024, 100_000) == pytest.approx(500, rel=0.05)
    assert sum(steps.taken) < 100  # somebody waits


def test_four_long_steps_are_enough():
    steps = Steps(2.0)
    assert seconds_left(steps.go, 1024, 1000) == 2000
    assert steps.taken == [1, 1, 2]


@pytest.mark.parametrize("most", [2, 3, 10])
def test_no_further_than_allowed(most):
    steps = Steps(0.001)
    assert seconds_left(steps.go, most, 1000) == pytest.approx(1)
    assert sum(steps.taken) == most


def test_a_clock_that_stands_still():
    assert seconds_left(Steps(0.0).go, 5, 1000) == 0


def test_a_slow_second_step_is_no_measure_of_the_others():
    taken = iter([9.0, 6.0, 2 * 2.0])  # caches are cold, memory is fetched
    assert seconds_left(lambda n: next(taken), 1024, 1000) == 2000
