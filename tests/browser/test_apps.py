"""The dashboard and the annotators' page in a real browser: screens, names, keyboard."""

from pathlib import Path

from dashboard_browser import Browser
from dashboard_log import served, write_log
from pages import SCREENS, enter, faults, opened, unnamed

from rag_sourcebias.pairs.annotate import AnnotationUnit, annotation_page, annotation_sheet


def test_the_dashboard_fits_every_screen_and_everything_has_a_name(
    browser: Browser, tmp_path: Path
) -> None:
    write_log(tmp_path / "events.sqlite")
    with served(tmp_path / "events.sqlite") as server:
        for width, dark in SCREENS:
            opened(browser, server.url, width, dark=dark)
            browser.wait("document.getElementById('live-text').textContent === 'Live'")
            assert faults(browser) == [], (width, dark)
            if width == 1280:
                assert unnamed(browser, dark=dark) == [], dark


def test_the_annotators_page_fits_every_screen_and_works_by_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    units = [
        AnnotationUnit(
            unit_id=f"u{i}",
            texts=(f"born {i} " * 40, f"made {i} " * 40),
            sources=("human", "llm:zeta"),
            query=f"what is {i}",
        )
        for i in range(4)
    ]
    page = tmp_path / "sheet.html"
    sheet = annotation_sheet(units, rng=3)
    page.write_text(annotation_page(sheet, 0), "utf-8")
    for width, dark in SCREENS:
        opened(browser, page, width, dark=dark)
        assert faults(browser) == [], (width, dark)
        if width == 1280:
            assert unnamed(browser, dark=dark) == [], dark
    for _ in range(30):
        enter(browser, "Tab")
        if browser.run("document.activeElement.matches('input[type=radio], #item button')"):
            break
    assert browser.run("document.activeElement.matches('input[type=radio], #item button')")
    enter(browser, " ")
    assert browser.run("document.querySelectorAll(':checked, [aria-pressed=true]').length") > 0
