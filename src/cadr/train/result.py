"""What a run came to: result.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cadr.errors import CheckpointError


def result(out: Path | str) -> dict[str, Any]:
    """The result of the finished run in folder `out`."""
    path = Path(out) / "result.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{out} holds no finished run: {path} does not exist; continue it first.") from None
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read ({error}); delete it and continue the run.") from None
    return dict(content)
