"""The page itself: a template with everything escaped that is not a drawing of ours."""

from __future__ import annotations

from typing import Any

from cadr.needed import needed


def render(content: dict[str, Any]) -> str:
    jinja2 = needed("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cadr.evaluate.report", "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html").render(content)
    return page
