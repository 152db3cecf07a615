"""The page itself: a template with everything escaped that is not a drawing of ours."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(content: dict[str, Any]) -> str:
    environment = Environment(
        loader=PackageLoader("cadr.evaluate.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(content)
