"""Figures as SVG, written by hand: they scale, print, follow the page's colours and need no plotting library."""

from cadr.report.figures.bars import Bar, bars
from cadr.report.figures.lines import Series, lines
from cadr.report.figures.matrix import matrix
from cadr.report.figures.reliability import reliability_diagram

__all__ = ["Bar", "Series", "bars", "lines", "matrix", "reliability_diagram"]
