"""Which labels may be wrong, of those that a network was trained on.

Such labels it repeats, right or wrong: it has learned them by heart. But in its middle each labelled example still lies
among its like (`names.py`), and what the model calls these has been learned from many labels. A label is doubtful where
another name is the commonest around it, and also the one that is so much oftener borne there than anywhere: the first
alone would doubt the labels of rare classes, the second alone those of common ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cadr.estimate.label_swap import against_all, around

_FEWEST = 10  # neighbours: a wrong label, learned by heart, spreads to its very nearest


def doubtful(
    seen: Sequence[Tensor], labels: Tensor, others: Sequence[Tensor], predicted: Tensor
) -> tuple[Tensor, Tensor]:
    """(m,) whether each label is doubtful, and (m, C) how often each name is borne around it; as in `fit_of_names`."""
    votes = torch.stack([around(*layer, predicted, _FEWEST) for layer in zip(seen, others, strict=True)]).mean(0)
    return (votes.argmax(1) != labels) & (against_all(votes, predicted).argmax(1) != labels), votes
