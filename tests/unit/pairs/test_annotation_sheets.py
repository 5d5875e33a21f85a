from __future__ import annotations

import base64
import csv
import hashlib
import html.parser
import io
import json
import re
from collections import Counter

import pytest

from rag_sourcebias.core.codec import write_fitted
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.pairs.annotate import (
    KEY,
    AnnotationUnit,
    annotation_csv,
    annotation_page,
    annotation_sheet,
    write_annotation_sheets,
)
from rag_sourcebias.pairs.annotated import read_annotation_key

NASTY = '</script><script>alert(1)</script><!-- & @@data@@ \u2028"'


def pair(i, **changes):
    fields = {
        "unit_id": f"secret-{i}",
        "texts": (f"  born {i}\n", f"made {i}"),
        "sources": ("human", "llm:zeta"),
        "query": f"what is {i}",
    }
    return AnnotationUnit(**{**fields, **changes})


PAIRS = [pair(i) for i in range(21)]


def plan_of(units=PAIRS, **options):
    return annotation_sheet(units, **{"rng": 3, **options})


def page_data(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def rows_of(plan, annotator):
    return [row for row in plan.key.rows if row.annotator == annotator]


def test_everyone_judges_every_pair_in_an_order_of_their_own():
    plan = plan_of(n=20, annotators=3)
    shown = [[row.unit for row in rows_of(plan, a)] for a in range(3)]
    assert [sorted(units) for units in shown] == [list(range(20))] * 3
    assert len({tuple(units) for units in shown}) == 3
    assert len({u.unit_id for u in plan.units}) == 20
    for a in range(3):
        assert Counter(row.order for row in rows_of(plan, a)) == {(0, 1): 10, (1, 0): 10}
    # which pairs are turned round differs between annotators too
    turned = [{r.unit for r in rows_of(plan, a) if r.order == (1, 0)} for a in range(3)]
    assert len(set(map(frozenset, turned))) == 3


def test_draws_and_order_of_sources_are_random_not_fixed():
    drawn = Counter(u.unit_id for seed in range(300) for u in plan_of(n=7, rng=seed).units)
    assert set(drawn) == {u.unit_id for u in PAIRS}
    assert min(drawn.values()) > 60  # 100 expected each, 60 is 5 standard deviations below
    first = [plan_of(n=1, annotators=1, rng=s).key.rows[0].order for s in range(200)]
    assert 60 < first.count((0, 1)) < 140


@pytest.mark.parametrize(("overlap", "shared"), [(0.0, 0), (0.4, 8), (1.0, 21)])
def test_overlap_says_how_many_pairs_everyone_judges(overlap, shared):
    plan = plan_of(annotators=("ann", "bob"), overlap=overlap)
    times = Counter(row.unit for row in plan.key.rows)
    assert set(times) == set(range(21))
    assert sum(n == 2 for n in times.values()) == shared
    sizes = [len(rows_of(plan, a)) for a in range(2)]
    assert max(sizes) - min(sizes) <= 1


def test_ids_are_opaque_reproducible_and_differ_between_sheets():
    plan = plan_of()
    ids = [row.row_id for row in plan.key.rows]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[bcdfghjkmnpqrstvwxz]{8}", row_id) for row_id in ids)
    assert plan_of().key == plan.key
    # the same seed on other texts: a key must not open the other sheet
    other = plan_of([pair(i, texts=("x", f"y {i}")) for i in range(21)])
    assert other.key.sheet_id != plan.key.sheet_id
    assert not set(ids) & {row.row_id for row in other.key.rows}
    assert plan_of(task=["quality"]).key.sheet_id != plan.key.sheet_id


def test_sheets_hold_texts_but_nothing_that_tells_their_source(tmp_path):
    files = write_annotation_sheets(plan_of(), tmp_path / "sheets")
    assert sorted(p.name for p in (tmp_path / "sheets").iterdir()) == sorted(
        f"annotator-{i}.{e}" for i in (1, 2, 3) for e in ("csv", "html")
    )
    assert files.key == tmp_path / "sheets.key.json"
    for sheet in files.sheets:
        text = sheet.read_text(encoding="utf-8")
        assert not re.search("human|llm|zeta|secret", text, re.IGNORECASE)
        assert "born 7" in text
        assert "made 7" in text
        assert "  born 7" not in text  # white space at the ends could tell as well
    key = read_annotation_key(files.key)
    assert key == plan_of().key
    assert "born" not in files.key.read_text()


def test_csv_escapes_formulas_and_leaves_out_an_empty_query_column():
    units = [pair(0, texts=("=SUM(A1)", "+1 or so"), query="")]
    rows = list(csv.reader(io.StringIO(annotation_csv(plan_of(units, task=["content"]), 0))))
    assert rows[0][1:3] == ["text_a", "text_b"]
    assert set(rows[1][1:3]) == {"'=SUM(A1)", "'+1 or so"}


class Outline(html.parser.HTMLParser):
    """What a page refers to, its ids, and its scripts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.refs, self.ids, self.labels = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        named = dict(attrs)
        self.refs += [named[a] for a in ("src", "href", "action", "srcset") if a in named]
        self.ids += [named["id"]] if "id" in named else []
        self.labels += [named["aria-labelledby"]] if "aria-labelledby" in named else []


def test_page_needs_nothing_from_outside_and_only_its_own_script_may_run():
    page = annotation_page(plan_of(), 0)
    outline = Outline(page)
    assert set(outline.refs) == {"data:,", "#item"}
    assert not re.search(r"url\(|@import|https?:", page)
    assert len(outline.ids) == len(set(outline.ids))
    assert set(outline.labels) <= set(outline.ids)
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert '["row_id", ...names]' in script  # what is read back
    assert set(re.findall(r'at\("(\w+)"\)', script)) <= set(outline.ids)
    assert '<html lang="en">' in page
    assert "prefers-color-scheme: dark" in page


def test_texts_cannot_break_out_of_the_page():
    units = [pair(0, texts=(NASTY, "harmless"), query=NASTY)]
    page = annotation_page(plan_of(units), 0)
    assert Outline(page).tags.count("script") == 2
    data = page_data(page)
    assert data["items"][0]["query"] == NASTY
    assert NASTY in data["items"][0].values()
    assert list(data) == ["sheet", "annotator", "questions", "items"]


@pytest.mark.parametrize(
    ("units", "options", "message"),
    [
        ([pair(1, query=" ")], {}, "unit 'secret-1' has no query; question 'relevance' needs one"),
        (
            PAIRS,
            {"task": ["better"]},
            "task 'better' is not one of relevance",
        ),
        (PAIRS, {"task": ()}, "task is empty"),
        (PAIRS, {"task": ("quality", "quality")}, "question names must differ, 'quality'"),
        (PAIRS, {"n": 0}, "n 0 is not in 1 … 21"),
        (PAIRS, {"annotators": 0}, "annotators must be at least 1, got 0"),
        (PAIRS, {"annotators": ("ann", "Ann")}, "annotator names must differ, 'ann'"),
        (PAIRS, {"annotators": 3, "n": 2, "overlap": 0}, "3 annotators but 2 units, 0 of them"),
    ],
)
def test_what_cannot_be_planned_is_refused(units, options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        plan_of(units, **options)


def test_sheets_are_overwritten_where_that_is_said(tmp_path):
    folder = tmp_path / "sheets"
    files = write_annotation_sheets(plan_of(), folder)
    write_annotation_sheets(plan_of(rng=4), folder, overwrite=True)
    assert read_annotation_key(files.key) == plan_of(rng=4).key


def test_keys_of_other_versions_and_other_files_are_refused(tmp_path):
    path = tmp_path / "key.json"
    write_fitted(plan_of().key, path, kind=KEY, version=9)
    with pytest.raises(UnsupportedVersionError, match=f"{KEY} of schema version 9"):
        read_annotation_key(path)
    path.write_text('{\n"rows": ]')
    with pytest.raises(DataError, match=r"key\.json:2 is not the JSON of a key"):
        read_annotation_key(path)
