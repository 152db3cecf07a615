"""What goes wrong with pretrained models, as the one sentence that it costs."""

from cadr.errors import DataError


class EmbeddingError(DataError):
    """A pretrained model is not there, or cannot be used for these data."""
