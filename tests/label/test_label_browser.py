"""The page in a real browser: by keyboard alone, on a phone, dark and light, read aloud; hostile names stay text."""

import shutil
import time

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data import open_data
from cadr.label.display import Display, ShownExample
from cadr.label.session import Session
from tests.label.runs import copied, served
from tests.report.own_runs import TINY, read_csv, write_csv
from tests.report.test_report_browser import FLAGS, luminance

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)")

HOSTILE = [
    '<img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    "'\"; window.hacked=1 //",
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run on a table whose classes, names, columns and cells would all like to run."""
    folder = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 60)
    x = 6 * np.eye(3)[truth] + random.normal(size=(60, 3))
    header = [f"<b onclick=hack()>{c}" for c in "pqr"]
    rows = [[f"<svg onload='window.hacked=1'>{i}", *x[i], HOSTILE[truth[i]] if i < 30 else ""] for i in range(60)]
    data = write_csv(folder / "table.csv", ["id", *header, "label"], rows)
    assert main(["train", str(data), "--ignore-columns", "id", *TINY, "--out", str(folder / "run")]) == 0
    return folder / "run"


class Page:
    """An opened page; keeps what it complained about and what it asked for."""

    def __init__(self, browser, server, width=1100, scheme="light"):
        self.server, self.session = server, server.session
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(server.address)
        self.settle()

    def until(self, expression, seconds=20):
        """Asked from outside: the policy of the page lets nothing be evaluated within it."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"{expression}: {self.page.evaluate('JSON.stringify(state)')}, {self.said}"
            self.page.wait_for_timeout(15)

    def settle(self, passed=0):
        self.until(f"state !== null && state.passed === {passed} && !busy")

    def press(self, *keys, passed):
        for key in keys:
            self.page.keyboard.press(key)
        self.settle(passed)

    def labels(self):
        path = self.session.answers.labels
        return [line["label"] for line in read_csv(path)] if path.exists() else []

    def text(self, where):
        return self.page.inner_text(where)


@pytest.fixture
def opened(browser, squares, tmp_path):
    pages = []
    with served(Session(copied(squares, tmp_path), device="cpu")) as server:

        def open_page(**options):
            pages.append(Page(browser, server, **options))
            return pages[-1]

        yield open_page
        for page in pages:
            page.context.close()


def test_by_keyboard_alone(opened):
    """Guesses, search, cannot tell, skip, undo, and what ten answers imply; not one click."""
    page = opened()
    given = page.labels()
    guess, other = (name for name, _ in page.session.state()["example"]["guesses"])
    page.press("1", passed=1)
    assert page.labels() == [*given, guess]
    page.press("2", passed=2)
    page.press("u", passed=1)
    assert page.labels() == [*given, guess]
    page.press("Control+z", passed=0)
    assert page.labels() == given
    page.press("s", passed=1)
    page.press("0", passed=2)
    assert page.labels() == given
    assert len(page.session.cannot_tell) == 1

    page.page.keyboard.press("/")
    assert page.page.evaluate("document.activeElement.id") == "query"
    page.page.keyboard.type(other[:3].upper())
    assert page.page.locator("#found li").all_inner_texts() == [other]
    page.press("Enter", passed=3)
    assert page.labels() == [*given, other]
    page.page.keyboard.press("/")
    assert page.page.locator("#found li").all_inner_texts() == ["dark", "light"]
    page.page.keyboard.press("ArrowDown")
    assert page.page.get_attribute("#query", "aria-activedescendant") == "found-1"
    page.press("Enter", passed=4)
    assert page.labels() == [*given, other, "light"]
    page.page.keyboard.press("/")
    page.page.keyboard.press("1")  # within the search it is a sign like any other
    page.page.keyboard.press("Escape")
    page.settle(4)
    assert page.page.is_hidden("#implied")
    for passed in range(5, 13):
        page.press("1", passed=passed)
    assert page.page.is_visible("#implied")
    assert page.text("#implied-words").startswith("After 10 answers.")
    assert page.page.locator("#implied-rows tr").count() == 2
    assert "cadr train" in page.text("#command")
    assert f"--out {page.session.opened.run}-2" in page.text("#command")
    assert page.said == []


def test_a_key_held_down_answers_once(opened):
    page = opened()
    given = len(page.labels())
    page.page.keyboard.down("1")
    for _ in range(5):
        page.page.keyboard.down("1")  # a repetition
    page.page.keyboard.up("1")
    page.settle(1)
    assert len(page.labels()) == given + 1


def test_single_keys_can_be_switched_off(opened):
    page = opened()
    given = page.labels()
    page.page.uncheck("#keys")
    page.page.keyboard.press("1")
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("state.passed") == 0
    page.page.get_by_role("button", name="1:").focus()
    page.press("Enter", passed=1)
    assert len(page.labels()) == len(given) + 1


def test_with_the_mouse(opened):
    page = opened()
    given = page.labels()
    page.page.get_by_role("button", name="2:").click()
    page.settle(1)
    page.page.get_by_label("Another class").click()
    page.page.get_by_role("option", name="dark").click()
    page.settle(2)
    assert page.labels()[len(given) + 1] == "dark"
    for name, passed in (("Undo", 1), ("Skip", 2), ("Cannot tell", 3)):
        page.page.get_by_role("button", name=name).click()
        page.settle(passed)


def test_to_the_last_one_and_back(opened):
    page = opened()
    asked = page.session.state()["asked"]
    for passed in range(1, asked + 1):
        page.press("s", passed=passed)
    assert page.text("#name").startswith("All of them were shown.")
    assert page.page.is_hidden("#search")
    assert page.page.is_disabled("#skip")
    page.page.keyboard.press("1")
    page.page.keyboard.press("s")
    page.press("u", passed=asked - 1)
    assert page.page.is_visible("#search")
    assert page.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_all_fits_and_can_be_read(opened, scheme):
    page = opened(width=360, scheme=scheme)
    for passed in range(1, 11):
        page.press("1", passed=passed)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    top = page.page.evaluate("document.querySelector('#guesses').getBoundingClientRect().bottom")
    assert top < 800  # picture and guesses without scrolling
    sizes = page.page.evaluate(
        "[...document.querySelectorAll('main button')].map(b => b.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 44  # for thumbs
    paper = luminance(page.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (paper > 0.9) == (scheme == "light")
    for where in ("body", ".quiet", "kbd", "#train", "tbody th", "#guesses button"):
        style = page.page.evaluate(
            """where => { let e = document.querySelector(where), back = e, colour = getComputedStyle(e).color;
                 const of = e => getComputedStyle(e).backgroundColor;
                 while (of(back).endsWith(', 0)')) back = back.parentElement;
                 return [colour, of(back)]; }""",
            where,
        )
        lighter, darker = sorted(map(luminance, style), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (where, style)  # WCAG AA


def test_read_aloud(opened):
    """Every control has a name, the picture too, and what changes is announced."""
    page = opened()
    tree = page.page.locator("body").aria_snapshot()
    example = page.session.state()["example"]
    guess = example["guesses"][0][0]
    for line in [
        'heading "What is this?"',
        f'region "{example["name"]}"',
        f'img "{example["name"]}"',
        'group "The model\'s guesses, the most likely first"',
        f'button "1: {guess}, ',
        'combobox "Another class /"',
        'button "0 Cannot tell"',
        'button "s Skip"',
        'button "u Undo" [disabled]',
        'checkbox "Answer with single keys"',
    ]:
        assert line in tree, tree
    page.press("1", passed=1)
    following = page.session.state()["example"]
    said = page.page.get_by_role("status").inner_text()
    assert said == f"Labelled {guess}. Next: {following['name']}. Guess: {following['guesses'][0][0]}."
    assert page.page.evaluate("document.activeElement.id") == "example"


def test_a_problem_is_an_alert_and_goes_away(opened):
    page = opened()
    labels = page.session.answers.labels
    content = labels.read_bytes()
    labels.write_bytes(b"\xff\xfe")
    page.page.keyboard.press("1")
    page.page.wait_for_selector("#problem:not([hidden])")
    assert "is not UTF-8" in page.page.get_by_role("alert").inner_text()
    page.settle(0)
    labels.write_bytes(content)
    page.press("1", passed=1)
    assert page.page.is_hidden("#problem")


def test_when_the_server_is_gone_it_says_so(opened):
    page = opened()
    page.page.route("**/*", lambda route: route.abort())
    page.page.keyboard.press("1")
    page.page.wait_for_selector("#problem:not([hidden])")
    assert "is cadr label still running?" in page.text("#problem")


def test_it_asks_this_server_alone(opened):
    page = opened()
    page.press("1", passed=1)
    assert page.asked
    assert all(url.startswith(page.server.address) for url in page.asked)


def test_training_on_from_the_page(opened):
    page = opened()
    page.press("1", passed=1)
    page.page.get_by_role("button", name="Train on with these labels").click()
    page.until("state.training.running")
    assert page.page.is_disabled("#skip")
    page.until("!state.training.running && state.run.endsWith('run-2')", 240)
    assert page.text("#progress").startswith("0 of 23 shown, 0 labelled")
    assert page.page.is_visible("#guesses button")


def test_names_that_would_like_to_run_stay_text(browser, hostile, tmp_path):
    with served(Session(copied(hostile, tmp_path), device="cpu")) as server:
        page = Page(browser, server)
        assert sorted(page.page.locator("#guesses button span:nth-child(2)").all_inner_texts()) == sorted(HOSTILE)
        assert page.text("#name").startswith("<svg onload='window.hacked=1'>")
        assert page.text("#shown").count("<b onclick=hack()>") == 3
        for passed in range(1, 11):
            page.press("2", passed=passed)
        page.page.keyboard.press("/")
        assert sorted(page.page.locator("#found li").all_inner_texts()) == sorted(HOSTILE)
        page.page.keyboard.press("Escape")
        assert sorted(page.page.locator("#implied-rows th").all_inner_texts()) == sorted(HOSTILE)
        assert page.page.evaluate("window.hacked") is None
        assert page.page.evaluate("document.querySelectorAll('img, svg, b, script:not([src])').length") == 0
        assert page.said == []
        labels = page.labels()
        page.context.close()
    assert len(labels) == 10
    table = str(tmp_path / "table.csv")
    pool = open_data(table, ignore_columns=("id",), labels=tmp_path / "table.labels.csv")
    assert set(labels) <= set(pool.class_names) == set(HOSTILE)


def test_a_text_is_shown_as_it_is_and_read_aloud(browser, squares, tmp_path, monkeypatch):
    text = f"First line, “quoted”.\n{HOSTILE[0]}"
    monkeypatch.setattr(Display, "shown", lambda self, row: ShownExample(f"{row}.txt", text=text))
    with served(Session(copied(squares, tmp_path), device="cpu")) as server:
        page = Page(browser, server, width=360)
        assert page.text("#shown").strip() == text
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert "First line, “quoted”." in page.page.locator("#example").aria_snapshot()
        given = page.labels()
        page.press("1", passed=1)
        assert len(page.labels()) == len(given) + 1
        assert page.page.evaluate("window.hacked") is None
        assert page.page.evaluate("document.querySelectorAll('img, script:not([src])').length") == 0
        assert page.said == []
        page.context.close()


def test_even_a_script_that_got_in_would_not_run(browser, squares, tmp_path):
    """The policy holds by itself: neither an inline script nor one of another place."""
    with served(Session(copied(squares, tmp_path), device="cpu")) as server:
        page = Page(browser, server)
        page.page.evaluate(
            """() => { const script = document.createElement('script'); script.textContent = 'window.hacked = 1';
                 document.body.append(script);
                 const image = document.createElement('img'); image.setAttribute('onerror', 'window.hacked = 2');
                 image.src = 'nowhere.png'; document.body.append(image); }"""
        )
        page.page.wait_for_timeout(300)
        assert page.page.evaluate("window.hacked") is None
        assert any("Content Security Policy" in line for line in page.said)
        page.context.close()


def test_another_site_can_neither_read_nor_write(browser, squares, tmp_path):
    """A page of another origin in the same browser, even one that knows the address."""
    with served(Session(copied(squares, tmp_path), device="cpu")) as server:
        context = browser.new_context()
        page = context.new_page()
        page.route("http://evil.example/", lambda route: route.fulfill(content_type="text/html", body="<p>hello"))
        page.goto("http://evil.example/")
        row = server.session.state()["example"]["row"]
        attempt = """async ([address, kind, row]) => {
            const body = JSON.stringify({ row, label: 'dark' });
            const mode = kind === 'text/plain' ? 'no-cors' : 'cors';
            const options = kind === null ? {} : { method: 'POST', body, headers: { 'Content-Type': kind }, mode };
            try { return (await (await fetch(address, options)).text()); } catch { return 'refused'; } }"""
        assert page.evaluate(attempt, [server.address + "state", None, row]) == "refused"
        assert page.evaluate(attempt, [server.address + "label", "application/json", row]) == "refused"
        page.evaluate(attempt, [server.address + "label", "text/plain", row])
        page.evaluate(
            """address => { const frame = document.createElement('iframe'); frame.src = address;
                 document.body.append(frame); return new Promise(done => setTimeout(done, 500)); }""",
            server.address,
        )
        assert all("cadr label" not in (frame.title() or "") for frame in page.frames)
        assert server.session.state()["labelled"] == 0
        context.close()
