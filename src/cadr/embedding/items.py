"""What is embedded: pictures or texts, read one by one, and known again by what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cadr.errors import CadrError, DataError

Modality = Literal["pictures", "texts"]
Vectors = NDArray[np.float32]
KEY = 16  # bytes of a hash
# of models, for sentences on what to name
EXAMPLES: dict[Modality, str] = {
    "pictures": "facebook/dinov2-small",
    "texts": "sentence-transformers/all-MiniLM-L6-v2",
}


class Items(Protocol):
    """Pictures in files or in memory, or texts."""

    @property
    def modality(self) -> Modality: ...

    def __len__(self) -> int: ...

    def key(self, row: int) -> bytes:
        """A hash of what the item holds, of `KEY` bytes."""
        ...

    def read(self, row: int, detail: int | None = None) -> NDArray[np.uint8] | str:
        """A uint8 picture (h, w, 3), smaller than it is if its shortest side stays above `detail`; or a text."""
        ...

    def refuse(self, failures: Sequence[tuple[int, CadrError]]) -> None:
        """Raise what is to be said of the items that cannot be read, if any."""
        ...


class EmbeddingError(DataError):
    """A pretrained model is not there, or cannot be used for these data."""
