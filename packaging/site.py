"""What mkdocs adds to docs/: the pages beside it, a page for every method from its docstring, and executed notebooks.

Links lead where they lead in the repository, as long as that is on the site; others, to sources and records, are left
as plain words.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {"README.md": "overview.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_SECONDS = 900  # for a cell of a notebook, on a machine that is busy with other things


def site_path(path: str) -> str | None:
    """Where a file of the repository is on the site; None of one that is not."""
    if path in PROJECT:
        return PROJECT[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    return path if re.fullmatch(r"benchmarks/[^/]+\.(md|svg|png)", path) else None


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A method is in the menu by the name it is chosen by, and so is every page of results."""
    assert config.nav is not None
    for section in config.nav:
        if "Methods" in section:
            section["Methods"].append({"One by one": [f"methods/{name}.md" for name in _methods()]})
        if "Results" in section:
            section["Results"].append({"Records": sorted(f"benchmarks/{p.name}" for p in ROOT.glob("benchmarks/*.md"))})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in [ROOT / name for name in PROJECT] + sorted(ROOT.glob("benchmarks/*.md")):
        name = path.relative_to(ROOT).as_posix()
        target = site_path(name)
        assert target is not None
        files.append(File.generated(config, target, content=linked(path.read_text(encoding="utf-8"), name)))
    for path in [*ROOT.glob("benchmarks/*.svg"), *ROOT.glob("benchmarks/*.png")]:
        files.append(File.generated(config, f"benchmarks/{path.name}", abs_src_path=str(path)))
    for name, kind in _methods().items():
        files.append(File.generated(config, f"methods/{name}.md", content=method_page(name, kind)))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, name, content="".join(executed(path))))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return markdown if page.file.generated_by else linked(markdown, f"docs/{page.file.src_uri}")


def linked(markdown: str, source: str) -> str:
    """The text of a file of the repository with links as they are on the site."""
    here = site_path(source)
    assert here is not None

    def replaced(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return found[0]
        there = site_path(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if there is None:
            return words
        relative = posixpath.relpath(there, posixpath.dirname(here) or ".")
        return f"{image}[{words}]({relative}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)  # code stays as it is
    return "".join(part if part.startswith("```") else _LINK.sub(replaced, part) for part in parts)


def _methods() -> dict[str, type[Any]]:
    from cadr.config import CHOICES

    return CHOICES["algorithm"]


def method_page(name: str, kind: type[Any]) -> str:
    """What a method is, by its own words and those of its options."""
    module = sys.modules[kind.__module__].__doc__ or ""
    words = [f"# {name}", module, kind.__doc__ or "", f"```text\ncadr train DATA --algorithm {name}\n```"]
    options = [f for f in dataclasses.fields(kind) if "help" in f.metadata]
    if options:
        rows = [f"| `--{f.name.replace('_', '-')}` | {_default(f.default)} | {_cell(f)} |" for f in options]
        words += ["## Options", "\n".join(["| flag | default | what it is |", "|---|---|---|", *rows])]
    return "\n\n".join(word.strip() for word in words) + "\n"


def _default(value: Any) -> str:
    return "" if value in (None, ()) else f"`{value}`"


def _cell(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata["help"]).replace("|", "\\|")


def executed(path: Path) -> Iterator[str]:
    """A notebook as a page, with what its cells really give; a cell that fails ends the build."""
    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=_SECONDS, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield linked(cell.source, f"docs/notebooks/{path.name}") + "\n\n"
        elif cell.cell_type == "code":
            yield f"```python\n{cell.source}\n```\n\n"
            for output in cell.outputs:
                yield _shown(output)


def _shown(output: Any) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f"<div>{data['text/html']}</div>\n\n"
    if "image/png" in data:
        return f"![](data:image/png;base64,{data['image/png'].strip()})\n\n"
    text = output.get("text") or data.get("text/plain", "")
    return f"```text\n{text.rstrip()}\n```\n\n" if text.strip() else ""
