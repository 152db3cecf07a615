"""The page itself: a template with everything escaped that is not a drawing of ours."""

from __future__ import annotations

from typing import Any

from cadr.utils.optional_imports import optional_import


def render(content: dict[str, Any]) -> str:
    jinja2 = optional_import("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cadr.report", "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html").render(content)
    return page
