"""Recipes: TOML files whose keys are the flags of `cadr train`.

Either the keys stand at the top (a run's own config.toml is such a recipe), or the file has `[rows]`, one per published
cell, each of which may refer to one of `[settings]` for what it shares with others. A row is named after a colon:
`recipes/hu2022.toml:cifar10-gamma50-cadr`.

Our own go with the package: where there is no folder `recipes`, that name means them.
"""

from __future__ import annotations

import difflib
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadr.cli.terminal import show_table
from cadr.errors import ConfigError
from cadr.utils.untrusted import parse_toml, read_text

if TYPE_CHECKING:
    from cadr.cli.main import Subparsers


_ABOUT = ("published", "published_sd", "tables", "expected")
FOLDER = Path("recipes")
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Row:
    """One published cell: how to run it, and what came out for its authors."""

    name: str
    setting: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    published: float | None = None
    published_sd: float | None = None
    tables: tuple[str, ...] = ()
    expected: str = ""  # of ours


def our_recipes() -> Path:
    """The folder of our recipes: inside an installed package, beside the sources in a checkout."""
    inside = _PACKAGE / FOLDER
    return inside if inside.is_dir() else _PACKAGE.parents[1] / FOLDER


def is_recipe(spec: str) -> bool:
    """Whether DATA on the command line names a recipe and not data."""
    return spec.endswith(".toml") or ".toml:" in spec


def read_recipe(spec: str) -> dict[str, Any]:
    """The values of a recipe, `file.toml` or `file.toml:row`."""
    head, _, name = spec.partition(".toml")
    path = Path(head + ".toml")
    content = _load(path)
    name = name.removeprefix(":")
    if "rows" not in content:
        if name:
            raise ConfigError(f"{path} has no rows, so {name!r} cannot be one of them; leave out {':' + name!r}")
        return content
    if not name:
        raise ConfigError(f"{path} has several rows; name one as {path}:ROW, and see them with cadr recipes {path}")
    rows = {row.name: row for row in read_rows(path)}
    if name not in rows:
        close = difflib.get_close_matches(name, rows, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"see them with cadr recipes {path}"
        raise ConfigError(f"{path} has no row {name!r}; {hint}")
    return rows[name].values


def read_rows(path: Path) -> list[Row]:
    """Every row of a recipe file, in its order."""
    content = _load(path)
    settings, cells = content.get("settings", {}), content.get("rows", {})
    for part in (settings, cells):
        if not isinstance(part, dict) or not all(isinstance(value, dict) for value in part.values()):
            raise ConfigError(f"{path}: expected tables in [settings] and [rows]; write a row as name = {{ … }}")
    rows = []
    for name, cell in cells.items():
        shared = cell.get("setting")
        if shared is not None and (not isinstance(shared, str) or shared not in settings):
            raise ConfigError(f"{path}, row {name}: there is no setting {shared!r}")
        values = settings.get(shared, {}) | {k: v for k, v in cell.items() if k != "setting" and k not in _ABOUT}
        if not isinstance(values.get("data", ""), str):
            raise ConfigError(f"{path}, row {name}: expected the name of data, got {values['data']!r}")
        rows.append(
            Row(
                name,
                shared or "",
                values,
                cell.get("published"),
                cell.get("published_sd"),
                tuple(cell.get("tables", ())),
                cell.get("expected", ""),
            )
        )
    return rows


def _load(path: Path) -> dict[str, Any]:
    ours = path.parent == FOLDER and not FOLDER.is_dir()
    try:
        return parse_toml(read_text(our_recipes() / path.name if ours else path))
    except FileNotFoundError:
        raise ConfigError(f"there is no recipe {path}") from None
    except ValueError as error:  # no TOML, no UTF-8, or a number with too many digits for Python
        raise ConfigError(f"{path} is not a TOML file: {error}") from None


_COLUMNS = ("row", "data", "labels", "algorithm", "model", "steps", "published", "expected", "table", "")


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
        str(values.get("steps", f"{values['minutes']} min" if "minutes" in values else "")),
        published,
        row.expected,
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
