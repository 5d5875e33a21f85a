"""Reports of every kind in a real browser: light and dark, phone and desk, keyboard, tables."""

from pathlib import Path

import pytest
from dashboard_browser import Browser
from outputs import to_html
from pages import SCREENS, dressed, enter, faults, opened, unnamed

from rag_sourcebias.kinds import read_report

STORED = Path(__file__).parents[1] / "golden" / "reports"
KINDS = (
    *("skew-evidence", "skew-full", "style-evidence", "answers-several", "debias-full"),
    *("judged-answers", "pairs-full"),
)
TABLE = "document.querySelector('#evidence .scroll > table')"


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, pages = tmp_path_factory.mktemp("pages"), {}
    for name in KINDS:
        pages[name] = folder / f"{name}.html"
        report = read_report(STORED / f"{name}.json.gz")
        pages[name].write_text(to_html(report), encoding="utf-8")
    return pages


@pytest.fixture
def page(browser: Browser, written: dict[str, Path]) -> Browser:
    opened(browser, written["skew-evidence"])
    return browser


@pytest.mark.parametrize("name", KINDS)
def test_a_report_fits_every_screen_and_complains_of_nothing(
    name: str, browser: Browser, written: dict[str, Path]
) -> None:
    for width, dark in SCREENS:
        opened(browser, written[name], width, dark=dark)
        assert faults(browser) == [], (width, dark)
        if width == 1280:
            assert unnamed(browser, dark=dark) == [], dark


def test_what_is_wrong_with_a_page_is_seen(browser: Browser, tmp_path: Path) -> None:
    bad = {
        "wide": dressed("<p style='width: 900px'>x</p>"),
        "loud": dressed("<script>console.error('x')</script>"),
        "blocked": dressed(
            "<script>1</script>",
            "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">",
        ),
    }
    for name, text in {**bad, "good": dressed("<p>x</p>")}.items():
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        opened(browser, tmp_path / "page.html", 390)
        assert bool(faults(browser)) == (name in bad), name
    for body in (
        "<button></button>",
        "<input>",
        "<p style='color:#ccc;background:#fff'>pale words</p>",
    ):
        (tmp_path / "page.html").write_text(dressed(body), encoding="utf-8")
        opened(browser, tmp_path / "page.html")
        assert unnamed(browser), body


def test_nothing_but_the_first_screen_is_seen_at_first(
    browser: Browser, written: dict[str, Path]
) -> None:
    browser.size(1280, 800)
    browser.open(written["skew-evidence"].as_uri())
    text = browser.run("document.body.innerText")
    assert "In 136 of 160 pairs, bm25 ranks the human version above the LLM version" in text
    assert "NDCG" not in text
    bottom = browser.run("document.querySelector('.rsb-next').getBoundingClientRect().bottom")
    assert bottom < 800


def test_a_reader_without_scripts_can_open_and_read_all(
    browser: Browser, written: dict[str, Path]
) -> None:
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.size(1280, 900)
        browser.open(written["skew-evidence"].as_uri())
        assert browser.run("document.querySelectorAll('button, .tools').length") == 0
        browser.run("document.querySelector('#evidence > summary').focus(); true")
        enter(browser)
        assert "2024-222696" in browser.run("document.querySelector('#evidence').innerText")
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)


def test_the_keyboard_reaches_the_folds_in_their_order(
    browser: Browser, written: dict[str, Path]
) -> None:
    browser.size(1280, 900)
    browser.open(written["skew-evidence"].as_uri())
    reached = []
    for _ in range(9):
        enter(browser, "Tab")
        reached.append(browser.run("document.activeElement.innerText.trim()"))
    folds = browser.run("[...document.querySelectorAll('main > details > summary')].map("
                        "s => s.innerText.trim())")  # fmt: skip
    assert reached[0] == "Skip to the findings"
    at = reached.index(folds[0])
    assert reached[at:] == folds[: len(reached) - at]
    assert len(reached) - at >= 4


def test_the_keyboard_sorts_a_table_both_ways(page: Browser) -> None:
    column = f"[...{TABLE}.tBodies[0].rows].slice(1).map(r => r.cells[2].innerText)"
    page.run(f"{TABLE}.tHead.rows[0].cells[2].querySelector('button').focus(); true")
    enter(page)
    assert page.run(f"{TABLE}.tHead.rows[0].cells[2].ariaSort") == "ascending"
    rising = [float(text.replace("\u2212", "-")) for text in page.run(column)]
    assert rising == sorted(rising)
    assert rising[0] < 0 < rising[-1]
    enter(page, " ")
    assert page.run(f"{TABLE}.tHead.rows[0].cells[2].ariaSort") == "descending"
    falling = [float(text.replace("\u2212", "-")) for text in page.run(column)]
    assert falling == sorted(rising, reverse=True)


def test_a_filter_leaves_the_rows_that_hold_the_words(page: Browser) -> None:
    page.run("document.querySelector('#evidence .tools input').focus(); true")
    page.ask("Input.insertText", text="44005")
    shown = page.run(f"[...{TABLE}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.innerText)")
    assert len(shown) == 2  # the name of the system over it
    assert "2024-44005" in shown[1]
    assert page.run("document.querySelector('#evidence [role=status]').innerText") == "1 of 11 rows"


def test_a_table_is_copied_as_csv(page: Browser) -> None:
    page.run("navigator.clipboard.writeText = async text => { window.copied = text; }; true")
    page.run("document.querySelector('#evidence .tools button').focus(); true")
    enter(page)
    page.wait("window.copied !== undefined")
    lines = page.run("window.copied").split("\r\n")
    assert lines[0] == (
        'group,query,other,difference ×100,"rank, human","rank, LLM","document, human",'
        '"document, LLM"'
    )
    assert lines[1] == (
        "bm25,2024-222696,llm:claude,+100.0,1,11,2024-222696@human,2024-222696@llm:claude"
    )
    assert lines[9].startswith("bm25,2024-213469,llm:claude,-50.0,15,3,")
    assert len(lines) == 13  # a head, eleven rows, and nothing after the last end of a line


def test_a_link_to_a_figure_opens_what_holds_it(browser: Browser, written: dict[str, Path]) -> None:
    browser.size(1280, 900)
    browser.open(f"{written['skew-evidence'].as_uri()}#at-relative-d-of-ndcg")
    browser.open(written["skew-evidence"].as_uri())
    link = browser.run("document.querySelector('#cutoffs figure .anchor').getAttribute('href')")
    browser.open(f"{written['skew-evidence'].as_uri()}{link}")
    assert browser.run("document.querySelector('#cutoffs').open")
    assert browser.run(f"document.querySelector({link!r}).getBoundingClientRect().top") < 900


def test_the_first_screen_stands_alone_in_a_notebook(browser: Browser, tmp_path: Path) -> None:
    for name in KINDS:
        screen = read_report(STORED / f"{name}.json.gz")._repr_html_()
        page = tmp_path / f"{name}.html"
        page.write_text(dressed(screen), encoding="utf-8")
        for width, dark in ((390, True), (1280, False)):
            opened(browser, page, width, dark=dark)
            assert faults(browser) == []
            assert unnamed(browser, dark=dark) == []


# What JupyterLab gives the lists of an output.
LAB = """<style>
  .lab dl dt, .lab dl dd { float: left; display: block; width: 20%; }
  .lab dl dd { width: 80%; }
  .lab ul { list-style: disc; }
  .lab ul:not(.inline) { padding-left: 2em; }
</style>"""
LISTS = """(() => {
  const box = one => one.getBoundingClientRect();
  const parts = [...document.querySelectorAll('.rsb-strip')].filter(s => s.querySelector('i:not(.line):not(.dot):not(.was):not(.chance)'));
  const overlaid = parts.flatMap(strip => [...strip.children]).filter(
    one => one.previousElementSibling && box(one).left < box(one.previousElementSibling).right);
  const listed = [...document.querySelectorAll('.rsb-key li')].filter(
    one => getComputedStyle(one).listStyleType !== 'none');
  return [parts.length, overlaid.length, listed.length];
})()"""  # noqa: E501


def test_the_first_screen_keeps_its_picture_in_jupyterlab(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for name in ("skew-full", "skew-evidence", "pairs-full", "debias-full"):
        screen = read_report(STORED / f"{name}.json.gz")._repr_html_()
        page.write_text(dressed(f'<div class="lab">{screen}</div>', LAB), encoding="utf-8")
        opened(browser, page)
        strips, *wrong = browser.run(LISTS)
        assert (strips >= 1) == (not name.startswith("skew"))
        assert wrong == [0, 0], name
    weak = screen.replace(".rsb-first .rsb-figure :is(dt, dd)", ".nothing").replace(
        ".rsb-first dd.rsb-strip {", ".rsb-strip {"
    )
    page.write_text(dressed(f'<div class="lab">{weak}</div>', LAB), encoding="utf-8")
    opened(browser, page)
    assert browser.run(LISTS)[1] > 0


POINTED = """(words => {
  const said = [...document.querySelectorAll('svg.plot title:not([id])')].find(
    title => title.textContent === words);
  if (!said) return null;
  for (let at = said; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
  const mark = said.parentElement;
  mark.scrollIntoView({block: 'center', behavior: 'instant'});
  const box = mark.getBoundingClientRect();
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  for (let at = hit; at && at.tagName !== 'svg'; at = at.parentElement) {
    const own = at.querySelector(':scope > title');
    if (own) return own.textContent;
  }
  return '';
})"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("skew-evidence", "bm25: @3: 60.3 [49.9, 69.6]"),
        ("answers-several", "plain: \u22120.01 [\u22120.25, 0.23] (score as it is)"),
    ],
)
def test_a_mark_says_its_figures_when_it_is_pointed_at(
    name: str, words: str, browser: Browser, written: dict[str, Path]
) -> None:
    opened(browser, written[name])
    assert browser.run(f"{POINTED}({words!r})") == words
    assert browser.run(f"{POINTED}('a mark that no picture has')") is None
    browser.run(
        "document.querySelectorAll('svg.plot').forEach(s => s.style.pointerEvents = 'none')"
    )
    assert browser.run(f"{POINTED}({words!r})") == ""
