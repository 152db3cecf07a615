"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """1 label, 2 labels."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(value: float) -> str:
    """A share in percent, with the digits that mean something: an estimate of 6.4e-07 % is an estimate of few."""
    if 0.0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:.1f} %" if value >= 1.0 or value == 0.0 else f"{value:.2g} %"
