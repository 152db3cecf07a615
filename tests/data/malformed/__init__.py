"""Malformed inputs, one file for each kind; importing them fills CASES."""

from tests.data.malformed import arrays, asked, benchmarks, cifar, images, splits, tables
from tests.data.malformed.case import CASES

__all__ = ["CASES", "arrays", "asked", "benchmarks", "cifar", "images", "splits", "tables"]
