"""For benchmarks that are only ever run as a whole."""

from __future__ import annotations

import argparse


def explain(about: str | None) -> None:
    """Answer --help with what the script says of itself, and refuse everything else: it runs for minutes and replaces
    a record."""
    argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
