"""The dashboard page in a real browser, over a real log and the real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from dashboard_browser import Browser, chromium
from dashboard_log import MARKUP, served, write_log

from rag_sourcebias.monitor import dashboard

STATIC = Path(dashboard.__file__).parent / "static"
TOKEN = "a-token-for-the-tests"
pytestmark = pytest.mark.server
LIVE = "document.getElementById('live-text').textContent === 'Live'"
AGAIN = "window.dispatchEvent(new Event('online'))"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no chromium or google-chrome on this machine")
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    try:
        found.connect()
        yield found
    finally:
        found.close()


@pytest.fixture
def browser(started: Browser) -> Browser:
    started.size(1280, 900)
    return started


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("log")
    write_log(folder / "events.sqlite")
    with served(folder / "events.sqlite") as server:
        yield server.url


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a log of fifteen days."""
    folder = tmp_path_factory.mktemp("days")
    write_log(folder / "events.sqlite", hours=15 * 24)
    with served(folder / "events.sqlite") as server:
        yield server.url


def text(browser: Browser, selector: str) -> str:
    found = browser.run(f"document.querySelector({selector!r}).innerText")
    return re.sub(r"\s+", " ", str(found))


def test_state_groups_and_alarms_are_told(browser: Browser, watched: str) -> None:
    browser.open(watched)
    browser.wait(LIVE)
    assert re.fullmatch(
        r"In tenant docs, human documents hold 3\d\.\d % \[\d\d\.\d, \d\d\.\d\] of the "
        r"exposure; their known share is 50\.0 %\.",
        text(browser, "#headline"),
    )
    groups = text(browser, "#groups")
    assert re.search(r"tenant docs 2,000 retrievals, 2,000 tested", groups)
    assert re.search(r"H human 3\d\.\d % \[\d\d\.\d, \d\d\.\d\] 50 % alarm", groups)
    assert "tenant docs: exposure of human is 0.3" in text(browser, "#alarms")
    facts = text(browser, "#facts")
    assert "3,000 written, 3,000 kept" in facts
    assert "No text is recorded" in facts
    assert browser.run("document.querySelectorAll('#over-time canvas').length") == 2
    assert browser.complaints == []  # neither errors nor breaches of the content security policy


def test_markup_from_requests_is_shown_as_text(browser: Browser, watched: str) -> None:
    browser.open(f"{watched}#show=retrievals")
    browser.wait(f"{LIVE} && !document.getElementById('retrievals').hidden")
    for section in ("#groups", "#retrievals", "#over-time", "#controls"):
        assert MARKUP in str(browser.run(f"document.querySelector('{section}').textContent")), (
            section
        )
    assert browser.run("document.images.length") == 0
    assert browser.run("document.title") == "Retrieval skew"
    assert browser.complaints == []


def test_a_step_is_chosen_with_keys_and_its_retrievals_read(browser: Browser, url: str) -> None:
    browser.open(f"{url}#range=6h")
    browser.wait(LIVE)
    browser.run("document.querySelector('.plots').focus()")
    for key in ("ArrowLeft", "ArrowLeft", "Enter"):
        browser.press(key)
    browser.wait("!document.getElementById('retrievals').hidden")
    assert re.match(r"Retrievals, .* – ", text(browser, "#retrievals h2"))
    assert browser.run("document.activeElement.id") == "retrievals-title"
    first = "document.querySelector('#retrievals tbody tr .squares')"
    assert browser.run(f"{first}.getAttribute('aria-label')").startswith("rank 1: ")
    assert len(re.findall("rank ", browser.run(f"{first}.getAttribute('aria-label')"))) == 5
    browser.run("document.querySelector('[data-key=\"drill:close\"]').click()")
    browser.wait("document.getElementById('retrievals').hidden")
    assert browser.complaints == []


def test_a_click_on_the_chart_shows_the_retrievals_of_the_step(browser: Browser, url: str) -> None:
    browser.open(f"{url}#range=6h")
    browser.wait(LIVE)
    box = browser.run("document.querySelector('.u-over').getBoundingClientRect().toJSON()")
    browser.click(box["left"] + box["width"] / 2, box["top"] + box["height"] / 2)
    browser.wait("!document.getElementById('retrievals').hidden")
    since, until = browser.run(
        "['since', 'until'].map((n) => Number(new URLSearchParams(location.hash.slice(1)).get(n)))"
    )
    titles = "[...document.querySelectorAll('#retrievals td.when')].map((cell) => cell.title)"
    times = [datetime.fromisoformat(t.replace(" UTC", "+00:00")) for t in browser.run(titles)]
    assert len(times) == len(set(times)) > 0
    assert all(int(since) <= time.timestamp() <= until for time in times)
    assert browser.complaints == []


def test_a_group_is_followed_to_older_retrievals(browser: Browser, url: str) -> None:
    rows = "document.querySelectorAll('#retrievals tbody tr').length"
    browser.open(f"{url}#range=24h&label=tenant%3Ddocs")
    browser.wait(LIVE)
    browser.run("document.querySelector('[data-key*=\":human\"].link').click()")
    browser.wait(f"{rows} === 50")
    browser.run("document.querySelector('[data-key=\"drill:older\"]').click()")
    browser.wait(f"{rows} === 100")
    ids = "[...document.querySelectorAll('#retrievals .id')].map((cell) => cell.textContent)"
    found = browser.run(ids)
    assert found == sorted(set(found), reverse=True)  # newest first, none twice
    browser.run("document.querySelector('[data-key=\"drill:first\"]').click()")
    browser.wait("location.hash.includes('top=1')")
    browser.wait(f"{rows} === 50")
    marks = "[...document.querySelectorAll('.squares')].map((s) => s.firstChild.textContent)"
    assert set(browser.run(marks)) == {"H"}
    assert set(
        browser.run(
            "[...document.querySelectorAll('#retrievals .labels')].map((c) => c.textContent)"
        )
    ) == {"tenant=docs"}
    assert browser.complaints == []


def test_choices_stand_in_the_address(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.wait(LIVE)
    for choice in ("by:style", "measure:first", "range:all"):
        browser.run(f"document.querySelector('[data-key=\"{choice}\"]').click()")
    browser.wait("document.querySelector('.legend').textContent.includes('untagged')")
    assert browser.run("location.hash") == "#range=all&by=style&measure=first"
    assert text(browser, "#chart-title") == "Share of the first ranks over time"
    assert "The monitor tests by source" in text(browser, "#groups")
    assert browser.complaints == []


@pytest.mark.parametrize(("width", "dark"), [(360, True), (768, False), (1600, True)])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, url: str, width: int, dark: bool
) -> None:
    browser.size(width, 800, dark=dark)
    browser.open(f"{url}#show=retrievals&group=llm")
    browser.wait(f"{LIVE} && !document.getElementById('retrievals').hidden")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('#over-time canvas').clientWidth") <= width
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)")


def test_an_empty_log_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path / "events.sqlite") as server:
        browser.open(server.url)
        browser.wait("document.getElementById('headline').textContent.startsWith('No retrieval')")
        assert "EventLog" in text(browser, "#detail")
        assert browser.complaints == []


def test_a_lost_connection_is_told(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path / "events.sqlite") as server:
        browser.open(server.url)
        browser.wait("document.getElementById('headline').textContent.startsWith('No retrieval')")
    browser.run(AGAIN)
    browser.wait("document.getElementById('live-text').textContent === 'Connection lost'")
    assert re.match(r"Connection lost since \d\d:\d\d", text(browser, "#trouble"))
    assert "The numbers are from" in text(browser, "#trouble")


def test_a_token_lets_the_page_in_and_its_loss_is_told(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path / "events.sqlite", token=TOKEN) as server:
        browser.open(server.url)
        assert "a token is needed" in str(browser.run("document.body.innerText"))
        browser.open(f"{server.url}?token={TOKEN}")
        browser.wait("document.getElementById('headline')?.textContent.startsWith('No retrieval')")
        assert browser.run("location.search + document.cookie") == ""
        browser.ask("Network.clearBrowserCookies")
        browser.run(AGAIN)
        browser.wait("document.getElementById('live-text').textContent === 'Token needed'")
        assert "?token=" in text(browser, "#trouble")


def test_scripts_never_read_data_as_markup_and_load_nothing_from_elsewhere() -> None:
    scripts = sorted(STATIC.glob("*.js"))
    assert len(scripts) > 10
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|https?:"
    assert [p.name for p in scripts if re.search(forbidden, p.read_text(encoding="utf-8"))] == []
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<style|style=|\son\w+=|https?:|<script(?![^>]*\ssrc=)", page) == []
