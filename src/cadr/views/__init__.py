"""Perturbed views of examples, made in batches on the device the examples are on."""

from cadr.views.features import FeatureViews
from cadr.views.images import ImageViews, to_model

__all__ = ["FeatureViews", "ImageViews", "to_model"]
