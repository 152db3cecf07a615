"""What a run has learned: its newest checkpoint, or the one before it where that is damaged, which is said."""

from __future__ import annotations

import sys

from cadr.errors import CheckpointError
from cadr.training import checkpoint
from cadr.training.run_folder import RunFolder


def trained(folder: RunFolder, purpose: str) -> checkpoint.Checkpoint:
    """The checkpoint to use. Standard error hears of a damaged one: predictions may go to standard output."""
    found, problem = checkpoint.newest(folder.path)
    if found is None:
        raise CheckpointError(f"{folder.path} holds no checkpoint to {purpose}; train it first.")
    if problem:
        step = int(found[0]["step"])
        print(f"Warning: {problem} The one before it is used, of step {step:,}.", file=sys.stderr, flush=True)
    return found
