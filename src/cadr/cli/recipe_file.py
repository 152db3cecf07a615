"""Recipes: TOML files whose keys are the flags of `cadr train`.

Either the keys stand at the top (a run's own config.toml is such a recipe), or the file has `[rows]`, one per published
cell, each of which may refer to one of `[settings]` for what it shares with others. A row is named after a colon:
`recipes/hu2022.toml:cifar10-gamma50-cadr`.

Our own go with the package: where there is no folder `recipes`, that name means them.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cadr.errors import ConfigError

_ABOUT = ("published", "published_sd", "tables")
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
    settings = content.get("settings", {})
    rows = []
    for name, cell in content.get("rows", {}).items():
        shared = cell.get("setting")
        if shared is not None and shared not in settings:
            raise ConfigError(f"{path}, row {name}: there is no setting {shared!r}")
        values = settings.get(shared, {}) | {k: v for k, v in cell.items() if k != "setting" and k not in _ABOUT}
        rows.append(
            Row(
                name,
                shared or "",
                values,
                cell.get("published"),
                cell.get("published_sd"),
                tuple(cell.get("tables", ())),
            )
        )
    return rows


def _load(path: Path) -> dict[str, Any]:
    ours = path.parent == FOLDER and not FOLDER.is_dir()
    try:
        return tomllib.loads((our_recipes() / path.name if ours else path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no recipe {path}") from None
    except ValueError as error:  # no TOML, no UTF-8, or a number with too many digits for Python
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
