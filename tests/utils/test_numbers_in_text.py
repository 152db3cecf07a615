"""Numbers in sentences."""

import pytest

from cadr.utils.text import counted, percent


def test_one_is_singular():
    assert [counted(n, "label") for n in (0, 1, 2, 1200)] == ["0 labels", "1 label", "2 labels", "1,200 labels"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0 %"), (6.4e-07, "< 0.1 %"), (0.0999, "< 0.1 %"), (0.1, "0.1 %"), (0.644, "0.64 %"), (12.34, "12.3 %")],
)
def test_shares_have_no_exponent(value, text):
    assert percent(value) == text
