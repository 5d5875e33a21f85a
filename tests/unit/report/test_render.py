"""Each kind of block in each output, by one rule; and what a report of its own takes."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from rag_sourcebias.core.finding import Code, Frame
from rag_sourcebias.report import document as d
from rag_sourcebias.report.figures import Intervals, Mark, Row
from rag_sourcebias.report.render import first_screen, markdown, page, terminal

HOSTILE = "<script>alert(1)</script>|*[x](javascript:1)`\\input{y}`"


class RenderedCode(Code, home="rendered"):
    """What the reports of these tests say."""

    HIGHER = "{system} ranks human text higher: {delta:signed}."
    NEXT = "With more: `rag-sourcebias audit {data}`"


def higher(system: str = "BM25", delta: float = -2.25) -> d.Finding:
    return RenderedCode.HIGHER(system=system, delta=delta)


def document(*blocks: d.Block, brief: bool = False, **changes: object) -> d.Document:
    made = d.Document(
        kind="Report of a test",
        name="sample",
        first=d.First(answer="It is so.", next=RenderedCode.NEXT(data="sample")),
        headline=(higher(),),
        facts=("a fact",),
        created="2026-01-02T03:04",
        cautions="Before you trust a number",
        warnings=(),
        sections=(d.Section(id="part", title="A part", blocks=blocks, brief=brief),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def printed(made: d.Document, *, width: int = 200) -> str:
    stream = io.StringIO()
    terminal(made, Console(file=stream, width=width, emoji=False, color_system=None))
    return stream.getvalue()


def body(text: str) -> str:
    """Return a page without its style and script."""
    return re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.DOTALL)


FRAME = Frame(
    columns={"system": ("BM25", "Dense"), "delta": (1.25, None)},
    formats={"delta": "signed"},
)
PICTURE = Intervals(title="of a picture", rows=(Row(label="row", marks=(Mark(at=1.0),)),))
SIDES = (
    d.Side(look="gone", label="human", pieces=(("one ", False), ("cat", True)), cut=""),
    d.Side(look="new", label="llm", pieces=(("one dog", False),), cut="The rest is left out."),
)
CARD = d.Card(
    name="BM25",
    standing="none",
    short="in short",
    texts=(higher(),),
    rows=(d.CardRow(name="NDCG@5", value="+1.2", ends="[0.1, 2.0]", star=True),),
)
SAYS = "BM25 ranks human text higher: −2.2."

#: A block; what a page, Markdown and a terminal show of it, "" for nothing of the kind.
RULES = {
    "heading": (d.Heading(text="Over", tags=("tag",)), "<h3>Over", "### Over, tag", ""),
    "say": (d.Say(text=higher()), f"<p>{SAYS}</p>", SAYS, SAYS),
    "aside": (d.Say(text="an aside", aside=True), '<p class="note">an aside', "an aside", ""),
    "listing": (
        d.Listing(rows=(higher(),), of=("one",)),
        f"<li><bdi>one</bdi>: {SAYS}",
        f"- one: {SAYS}",
        f"• one: {SAYS}",
    ),
    "checks": (
        d.Checks(rows=(d.Check(of="llm", name="ids known", met=False, text="3 are not"),)),
        '<dt>Ids known <span class="tag">not met</span></dt><dd>3 are not',
        "| ids known | not met | 3 are not |",
        "✗ ids known: 3 are not",
    ),
    "cards": (
        d.Cards(cards=(CARD,), look="source"),
        '<dd class="value">+1.2<abbr title="significant after correction">*',
        f"- BM25: {SAYS}",
        f"• BM25: {SAYS}",
    ),
    "table": (
        d.Table(caption="All of it", frame=FRAME),
        '<bdi>BM25</bdi></th><td class="num">+1.2</td>',
        "| BM25 | +1.2 |",
        "BM25                     +1.2",
    ),
    "brief table": (
        d.Table(caption="In short", frame=FRAME, brief=True),
        "",
        "",
        "BM25                     +1.2",
    ),
    "facts": (
        d.Facts(frames=(("Data", FRAME),)),
        "<dt><bdi>Dense</bdi></dt><dd><bdi>–</bdi>",
        "| Dense | – |",
        "",
    ),
    "pictures": (d.Pictures(items=(("a caption", PICTURE),)), "<bdi>a caption</bdi>", "", ""),
    "versions": (
        d.Versions(name="q1", where="query", sides=SIDES, findings=(higher(),)),
        "one <mark>cat</mark>",
        "> **human:** one cat",
        "",
    ),
    "fold": (
        d.Fold(summary="More", blocks=(d.Say(text=higher()),)),
        f"<summary>More</summary>\n<p>{SAYS}",
        SAYS,
        "",
    ),
    "questions": (
        d.Questions(rows=(("What is it?", "A test."),)),
        "<dt>What is it?</dt><dd>A test.",
        "**What is it?** A test.",
        "",
    ),
    "only": (
        d.Only(outputs=("markdown",), blocks=(d.Say(text="for files"),)),
        "",
        "for files",
        "",
    ),
}


@pytest.mark.parametrize("kind", RULES)
def test_a_block_stands_where_its_rule_says(kind: str) -> None:
    block, *expected = RULES[kind]
    made, bare = document(block, brief=True, headline=()), document(brief=True, headline=())
    for render, text in zip((page, markdown, printed), expected, strict=True):
        shown, without = render(made), render(bare)
        if text:
            assert text in shown
            assert text not in without
        elif render is not page:
            assert [line for line in shown.splitlines() if line and line not in without] in (
                [], ["## A part"],
            )  # fmt: skip
    if not expected[0]:
        assert "+1.2" not in body(page(made))
        assert "for files" not in page(made)


def test_every_kind_of_block_has_a_rule() -> None:
    kinds = {type(block) for block, *_ in RULES.values()}
    assert kinds == set(d.Block.__args__)  # type: ignore[attr-defined]


def test_a_terminal_shows_brief_sections_and_what_is_only_for_it() -> None:
    assert "said" not in printed(document(d.Say(text="said")))
    only = d.Only(outputs=("terminal",), blocks=(d.Heading(text="Over"), d.Say(text="said")))
    assert "Over\nsaid" in printed(document(only))
    assert "said" not in body(page(document(only)))


def test_the_frame_of_a_report() -> None:
    made = document(d.Say(text="said"), warnings=(higher("x<y"),))
    text = page(made)
    assert "<title>Report of a test: sample</title>" in text
    assert f'<p class="headline">{SAYS}</p>' in text
    assert '<p class="meta">a fact · <time datetime="2026-01-02T03:04">2026-01-02</time>' in text
    assert "Before you trust a number: 1 warning<" in text
    assert "<li>x&lt;y ranks human text higher: −2.2.</li>" in text
    assert "<span>With more:</span> <code>rag-sourcebias audit sample</code>" in text
    told = markdown(made)
    assert told.startswith("# Report of a test: sample\n\n**It is so.**\n\nWith more: `rag-")
    assert "> **Note:** x\\<y ranks" in told
    lines = printed(made).splitlines()
    assert lines[:3] == ["It is so.", "", SAYS]
    assert lines[-3:] == [
        "Warning: x<y ranks human text higher: −2.2.", "",
        "With more: rag-sourcebias audit sample",
    ]  # fmt: skip
    assert page(replace(made, title="Another")).count("<title>Another</title>") == 1


class Balanced(HTMLParser):
    """Remember elements that a name may not bring in, and that none stays open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.scripts += tag == "script"
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_names_out_of_data_are_escaped_wherever_they_stand() -> None:
    name = d.Name(HOSTILE)
    told = higher(HOSTILE)
    side = d.Side(look="new", label=HOSTILE, pieces=((HOSTILE, True),), cut=HOSTILE)
    frame = Frame(columns={"a": (HOSTILE, HOSTILE), HOSTILE: (HOSTILE, None), "c": (1, 2)})
    picture = replace(PICTURE, title=HOSTILE, rows=(Row(label=HOSTILE),))
    card = replace(CARD, name=HOSTILE, short=told, texts=(told,), tags=(name,))
    blocks = (
        d.Heading(text=name, tags=(name,)),
        d.Say(text=told),
        d.Listing(rows=(told, name), of=(HOSTILE, name)),
        d.Checks(rows=(d.Check(of=HOSTILE, name=name, met=None, text=told),)),
        d.Cards(cards=(card,), look="source"),
        d.Table(caption=HOSTILE, frame=frame),
        d.Table(caption=HOSTILE, frame=replace(frame, n_heads=2)),
        d.Facts(frames=((name, frame),)),
        d.Pictures(items=((HOSTILE, picture),)),
        d.Fold(summary=told, blocks=(d.Say(text=name),)),
        d.Versions(name=HOSTILE, where=HOSTILE, about=HOSTILE, sides=(side, side), values=HOSTILE),
    )
    first = d.First(
        answer=told,
        verdict=told,
        doubts=(told,),
        rows=(d.FirstRow(name=name, parts=((HOSTILE, 2, "other"),), text=HOSTILE),),
        next=RenderedCode.NEXT(data=HOSTILE),
    )
    made = document(
        *blocks, brief=True, name=HOSTILE, first=first, warnings=(told,), facts=(name,),
        headline=(told, name),
    )  # fmt: skip
    found = Balanced(page(made))
    assert (found.open, found.scripts) == ([], 1)
    assert Balanced(first_screen(made)).scripts == 0
    text = re.sub(r"``.*?``", "", markdown(made))  # a command stands in code of its own
    assert not re.search(r"(?<!\\)(<script|\]\(javascript|`)", text)
    assert HOSTILE in printed(made, width=4000)
    assert r"\input" not in frame.to_latex()


def test_a_command_is_code_and_a_backtick_of_a_name_is_none() -> None:
    listed = d.Listing(rows=(RenderedCode.NEXT(data="my`data"),))
    assert "<li>With more: <code>rag-sourcebias audit my`data</code>" in page(document(listed))
    assert "- With more: `` rag-sourcebias audit my`data ``" in markdown(document(listed))
    assert "<code>" not in body(page(document(d.Say(text=higher("`x`")), first=d.First(answer=""))))


def test_a_picture_that_fails_costs_itself(caplog: pytest.LogCaptureFixture) -> None:
    broken = replace(PICTURE, rows=(Row(label="row", box=(1.0,)),))
    shown = page(document(d.Pictures(items=(("good", PICTURE), ("broken", broken)))))
    assert shown.count("<svg") == 1
    assert shown.count('class="undrawn"') == 1
    (record,) = caplog.records
    assert record.getMessage().startswith("1 of 2 pictures of the page 'Report of a test: sample'")


@pytest.mark.parametrize("width", [30, 60, 100])
def test_columns_of_a_terminal_stand_side_by_side_as_far_as_there_is_room(width: int) -> None:
    columns = {f"column {i}": (i, 10 * i) for i in range(12)}
    frame = Frame(columns={"group": ("a", "a"), "name": ("x" * 40, "y"), **columns}, n_heads=2)
    sides = (("", "", *["strong other"] * 12), ("", *[""] * 13))
    table = d.Table(caption="", frame=frame, sides=sides)
    text = printed(document(table, brief=True), width=width)
    lines = [line for line in text.splitlines() if "rag-sourcebias " not in line]
    assert all(len(line) <= width for line in lines)
    assert text.count("column") == 12
    assert text.count("y ") >= 12 // ((width - 26) // 8 or 1)


def test_a_sparse_table_leaves_out_empty_rows_in_a_terminal_only() -> None:
    frame = Frame(columns={"flag": ("none", "some"), "n": (0, 3), "share": (None, 0.5)})
    made = document(d.Table(caption="Flags", frame=frame, sparse=True), brief=True)
    assert "none" not in printed(made)
    assert "none" in markdown(made)


def test_bars_stand_beside_the_column_that_they_show() -> None:
    frame = Frame(
        columns={"system": ("a", "a", "b"), "measure": ("m", "n", "m"), "delta": (1, 2, 3)},
        n_heads=2,
    )
    bar = d.Bar(left=10, width=20, dot=15, side="other", solid=True)
    table = d.Table(caption="All", frame=frame, bars=(bar, None, None), bars_at=2, scale="0 … 9")
    shown = page(document(table))
    assert shown.count('<tr class="star">') == 1
    assert shown.count('<td class="num delta">') == 3
    assert shown.count('<tr class="group">') == 2
    assert '<th scope="col" data-bar>0 … 9</th>' in shown
