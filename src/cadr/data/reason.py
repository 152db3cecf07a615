"""What another library says about a damaged file, made fit for one line on a terminal.

Such messages can quote the file itself, at any length and with any control characters.
"""

from __future__ import annotations

LONGEST = 200


def reason(error: BaseException) -> str:
    printable = "".join(c if c.isprintable() else " " for c in str(error))
    text = " ".join(printable.split()) or type(error).__name__
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def listed(names: tuple[str, ...] | list[str]) -> str:
    """Names found in a file, quoted; of very many, the first."""
    shown = ", ".join(repr(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"
