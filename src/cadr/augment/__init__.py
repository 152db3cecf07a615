"""Perturbed views of examples, made in batches on the device the examples are on."""

from cadr.augment.features import FeatureViews
from cadr.augment.images import ImageViews

__all__ = ["FeatureViews", "ImageViews"]
