"""The report in a real browser: it draws, complains about nothing, asks nobody for anything, and fits a phone."""

import shutil

import pytest

from cadr.cli.main import main

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TINY = ["--protocol", "longtail", "--n-max", "20", "--gamma", "20", "--model", "mlp", "--hidden", "16"]
TINY += ["--steps", "40", "--batch", "16", "--ratio", "2", "--evaluations", "8", "--threshold", "0.1"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report on one run, and one on two."""
    folder = tmp_path_factory.mktemp("report")
    runs = [str(folder / name) for name in ("fixmatch", "cadr")]
    for run, algorithm in zip(runs, ("fixmatch", "cadr"), strict=True):
        assert main(["train", "digits", "--algorithm", algorithm, "--out", run, *TINY]) == 0
    assert main(["report", runs[1], "--out", str(folder / "one.html"), "--device", "cpu"]) == 0
    assert main(["report", *runs, "--out", str(folder / "two.html"), "--device", "cpu"]) == 0
    return {"one": folder / "one.html", "two": folder / "two.html"}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, pages):
    """Opens a report; keeps what the page complained about and what it asked for."""
    contexts = []

    def open_page(which, width=1100, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        address = pages[which].as_uri()
        page.goto(address)
        return page, said, [url for url in asked if url != address and not url.startswith("data:")]

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("which", ["one", "two"])
def test_no_complaint_and_no_request(opened, which):
    page, said, asked = opened(which)
    assert page.title().startswith("digits")
    assert said == []
    assert asked == []


SHAPES = """svg => [...svg.querySelectorAll('path.line, rect, circle')].filter(shape => {
  const box = shape.getBBox(); return box.width > 0 || box.height > 0; }).length"""


@pytest.mark.parametrize(("which", "runs"), [("one", 1), ("two", 2)])
def test_every_figure_is_there_and_not_empty(opened, which, runs):
    page, _, _ = opened(which)
    for kind, least in (("bars", 2), ("lines", 2), ("panel", 50), ("matrix", runs), ("reliability", runs)):
        figures = page.query_selector_all(f"svg.{kind}")
        assert len(figures) >= least, kind
        for figure in figures:
            box = figure.bounding_box()
            assert box["width"] > 100, kind
            assert box["height"] > 60, kind
            # a class whose pseudo-labels were never used has no precision, and its panel says so
            assert figure.evaluate(SHAPES) > 0 or "no values" in figure.text_content(), figure.get_attribute(
                "aria-label"
            )
    for name in ("Recall of", "coverage of", "class distribution", "Threshold of"):
        panels = page.query_selector_all(f"svg.panel[aria-label*='{name}']")
        assert len(panels) == 10, name
        assert all(panel.evaluate(SHAPES) > 0 for panel in panels), name
    count = "svg => svg.querySelectorAll('path.line').length"
    assert all(figure.evaluate(count) == runs for figure in page.query_selector_all("svg.lines"))


@pytest.mark.parametrize("which", ["one", "two"])
def test_thumbnails_are_decoded(opened, which):
    page, _, _ = opened(which)
    sizes = page.evaluate("[...document.images].map(image => [image.naturalWidth, image.naturalHeight])")
    assert len(sizes) >= 12
    assert all(size == [8, 8] for size in sizes)


@pytest.mark.parametrize("which", ["one", "two"])
def test_a_phone_shows_it_without_scrolling_sideways(opened, which):
    page, _, _ = opened(which, width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    small = page.evaluate(
        """[...document.querySelectorAll('svg.plot text:not(.tiny)')].map(text => {
             const scale = text.getScreenCTM().a; return scale * parseFloat(getComputedStyle(text).fontSize); })"""
    )
    assert min(small) >= 8  # pixels
    outside = page.evaluate(
        """[...document.querySelectorAll('svg.plot, img, p, li, pre')].filter(
             e => e.getBoundingClientRect().right > innerWidth + 1).length"""
    )
    assert outside == 0


def test_light_and_dark_differ_and_both_can_be_read(opened):
    seen = {}
    for scheme in ("light", "dark"):
        page, _, _ = opened("one", scheme=scheme)
        colours = page.evaluate(
            """['body', 'figcaption', 'svg.plot text'].map(where => {
                 const style = getComputedStyle(document.querySelector(where));
                 return where.startsWith('svg') ? style.fill : style.color; })"""
        )
        paper = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for colour in colours:
            lighter, darker = sorted((luminance(colour), paper), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, colour)  # WCAG AA
        seen[scheme] = paper
    assert seen["light"] > 0.9
    assert seen["dark"] < 0.05


def luminance(colour):
    """Relative luminance of "rgb(r, g, b)"."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_it_prints(opened, tmp_path):
    page, _, _ = opened("two", scheme="dark")
    page.emulate_media(media="print")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) == pytest.approx(1.0)
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
