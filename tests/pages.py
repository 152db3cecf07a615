"""The pages of the documentation, their blocks, and the command lines in those that do not run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "benchmarks").glob("*.md"))]


class Block(NamedTuple):
    language: str
    line: int
    content: str


def blocks(page: Path) -> list[Block]:
    """What stands in fences."""
    found: list[Block] = []
    content: list[str] = []
    language, start = None, 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if language is None:
                language, start, content = line[3:].strip(), number, []
            else:
                found.append(Block(language, start, "\n".join(content) + "\n"))
                language = None
        elif language is not None:
            content.append(line)
    assert language is None, f"{page.name}: the block of line {start} does not end"
    return found


def commands(page: Path) -> list[list[str]]:
    """Command lines that no test runs, in words: of text blocks, indented, or with flags within a sentence."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks(page) if block.language == "text" for line in block.content.splitlines()]
    lines += re.findall(r"^    +(.+)$", prose, flags=re.MULTILINE)
    lines += [span for span in re.findall(r"`([^`]+)`", prose) if " --" in span]
    found = []
    for line in lines:
        if re.match(r"(\$ )?(cadr|make|(python3? )?benchmarks/\w+\.py)( |$)", line):
            words = shlex.split(line.removeprefix("$ "), comments=True)
            found.append(words[1:] if words[0].startswith("python") else words)
    return found
