"""`cadr recipes`: the rows of recipe files as a table."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cadr.cli.recipe_file import FOLDER, Row, our_recipes, read_rows
from cadr.cli.terminal_table import show_table
from cadr.errors import ConfigError

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers

_COLUMNS = ("row", "data", "labels", "algorithm", "model", "steps", "published", "table", "")


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "recipes",
        help="list the rows of recipes",
        description="List the rows of recipes: what they run and what was published. Run one with "
        "cadr train recipes/hu2022.toml:cifar10-gamma50-cadr.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recipe files (default: recipes/*.toml)")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose name contains this")
    parser.set_defaults(run=run)


def run(namespace: Namespace) -> int:
    found = FOLDER if FOLDER.is_dir() else our_recipes()
    files = namespace.files or [FOLDER / path.name for path in sorted(found.glob("*.toml"))]
    if not files:
        raise ConfigError(f"there are no recipes in {found.resolve()}; name a file: cadr recipes FILE")
    for path in files:
        rows = [row for row in read_rows(path) if namespace.only in row.name]
        show_table(_COLUMNS, [_line(row) for row in rows], title=str(path))
    return 0


def _line(row: Row) -> list[str]:
    values = row.values
    published = "" if row.published is None else f"{row.published:.2f}"
    if row.published_sd is not None:
        published += f" ± {row.published_sd:.2f}"
    note = "" if available(row) else "not yet available"
    return [
        row.name,
        str(values.get("data", "")),
        _labels(values),
        str(values.get("algorithm", "")),
        str(values.get("model", "")),
        str(values.get("steps", "")),
        published,
        ", ".join(row.tables),
        note,
    ]


def available(row: Row) -> bool:
    """Whether everything the row chooses exists."""
    from cadr.config import CHOICES

    return all(row.values[part] in registry for part, registry in CHOICES.items() if part in row.values)


def _labels(values: dict[str, object]) -> str:
    symbols = {"n": "n", "n_max": "n_max", "gamma": "γ", "gamma_unlabelled": "γ_u"}
    if values.get("n_max") == values.get("gamma"):
        symbols.pop("n_max")  # the paper's rule
    parameters = [f"{symbol}={values[key]}" for key, symbol in symbols.items() if key in values]
    return " ".join([str(values.get("protocol", "as they are")), *parameters])
