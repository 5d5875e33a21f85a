"""Declared provenance, dates older than the models, and tags that contradict each other."""

from collections import Counter

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.document_stores import open_document_store
from rag_sourcebias.tagging.documents import SidecarStore, tag_documents, tag_store
from rag_sourcebias.tagging.rules import (
    UNNAMED_MODEL,
    DateTagger,
    IdTagger,
    ProvenanceTagger,
    html_fields,
    shared_date,
)

IPTC = "http://cv.iptc.org/newscodes/digitalsourcetype/"


def tag(metadata: dict | None = None, text: str = "text") -> DocTags | None:
    return ProvenanceTagger()("d", text, metadata or {})


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (IPTC + "trainedAlgorithmicMedia", UNNAMED_MODEL),
        ("trainedAlgorithmicMedia", UNNAMED_MODEL),
        ("https://schema.org/TrainedAlgorithmicMediaDigitalSource", UNNAMED_MODEL),
        (IPTC + "digitalCreation", "human"),
        (IPTC + "humanEdits", "human"),
        (IPTC + "compositeWithTrainedAlgorithmicMedia", None),
        (IPTC + "algorithmicallyEnhanced", None),
        (IPTC + "algorithmicMedia", None),
        (IPTC + "digitalCapture", None),
        ("nonsense", None),
    ],
)
def test_iptc_types(value: str, source: str | None) -> None:
    assert tag({"digitalSourceType": value}) == DocTags(source=source, origin="provenance")


@pytest.mark.parametrize(
    "metadata",
    [
        {"Iptc4xmpExt:DigitalSourceType": "humanEdits"},
        {"digital_source_type": "humanEdits"},
        {"xmp": {"digitalsourcetype": "humanEdits"}},
        {"headers": {"ai-disclosure": "mode=none"}},
        {"AI_Disclosure": "none"},
    ],
)
def test_spellings_and_places(metadata: dict) -> None:
    assert tag(metadata).source == "human"


@pytest.mark.parametrize("metadata", [{}, {"source": "human"}, {"digitalSourceType": ""}, {"a": 1}])
def test_no_declaration_gives_nothing(metadata: dict) -> None:
    assert tag(metadata) is None


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ('mode=ai-originated, model="gpt-4o, large", provider="OpenAI"', "llm:gpt-4o, large"),
        ("mode=machine-generated; model=phi-3", "llm:phi-3"),
        ("mode=machine-generated", UNNAMED_MODEL),
        ('mode=ai-modified, model="gpt-4o"', None),
        ("mode=none", "human"),
        ("mode=other", None),
    ],
)
def test_ai_disclosure(value: str, source: str | None) -> None:
    assert tag({"AI-Disclosure": value}) == DocTags(source=source, origin="provenance")


def test_declarations_that_disagree_leave_the_source_unknown() -> None:
    tagger = ProvenanceTagger()
    both = {"digitalSourceType": "humanEdits", "AI-Disclosure": "mode=machine-generated"}
    assert tagger("d", "", both) == DocTags(origin="provenance")
    models = {
        "AI-Disclosure": "mode=ai-originated, model=a",
        "headers": {"AI-Disclosure": "mode=ai-originated, model=b"},
    }
    assert tagger("d", "", models) == DocTags(origin="provenance")


def test_a_model_named_in_one_field_completes_the_other() -> None:
    both = {
        "digitalSourceType": "trainedAlgorithmicMedia",
        "AI-Disclosure": "mode=ai-originated, model=m",
    }
    assert tag(both).source == "llm:m"


PAGE = """<!DOCTYPE html><html><head>
<!-- <meta name="AI-Disclosure" content="mode=none"> -->
<meta content='mode=ai-originated, model=&quot;gpt-4o&quot;' name="ai-disclosure">
<script type="application/ld+json">{"@graph": [
 {"@type": "Article", "digitalSourceType": "https://schema.org/TrainedAlgorithmicMediaDigitalSource"},
 {"@type": "ImageObject", "digitalSourceType": "https://schema.org/DigitalCreationDigitalSource"}]}
</script></head><body><meta name="AI-Disclosure" content="mode=none"></body></html>"""


def test_html_pages_are_read_without_comments_body_and_pictures() -> None:
    assert tag(text=PAGE) == DocTags(source="llm:gpt-4o", origin="provenance")
    assert tag(text="How to write " + PAGE) is None
    assert list(html_fields('<html><script type="application/ld+json">{bad</script>')) == []


# Dates older than the models, and tags that contradict each other


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({"date": "2021-05-03"}, "human"),
        ({"year": 2020}, "human"),
        ({"publishedAt": "2022-10-31T23:00:00Z"}, "human"),
        ({"published_at": "2022-10"}, "human"),
        ({"date": "2022-11-01"}, None),
        ({"year": 2022}, None),  # its last day is too late
        ({"date": "2019-01-01", "last_modified": "2024-02-01"}, None),
        ({"date": "2019-01-01", "updated": "yesterday"}, None),
        ({"date": "3 May 2019"}, None),
        ({"created": 1556841600}, None),  # seconds since 1970 are no year
        ({"published": ""}, None),
        ({"update_frequency": "2019"}, None),
        ({"date": "1970-01-01T00:00:00Z"}, None),
        ({"date": "0001-01-01"}, None),
        ({"date": "1900-01-01", "year": 1970}, None),
        ({"created": "1980-01-01", "date": "2019-05-01"}, "human"),
        ({"date": "1970-01-02"}, "human"),
        ({}, None),
    ],
)
def test_a_document_is_human_where_all_of_its_dates_are_old(metadata, source) -> None:
    found = DateTagger("2022-11")("d", "text", metadata)
    expected = None if source is None else DocTags(source="human", origin="provenance")
    assert found == expected


def test_a_date_that_is_none_is_refused() -> None:
    with pytest.raises(DataError, match="'Nov 2022' is no date; write YYYY"):
        DateTagger("Nov 2022")


def test_a_date_that_most_documents_share_says_nothing() -> None:
    rows = [
        (str(i), "x", {"date": "2011-11-11" if i < 30 else f"20{i - 20}-05-01"}) for i in range(40)
    ]
    assert shared_date(rows) == ("2011-11-11", 30)
    tagger = DateTagger("2022-11")
    tagger.shared = "2011-11-11"
    assert [tagger(*row) is not None for row in rows] == [False] * 30 + [True] * 10
    assert shared_date(rows[20:]) == ("", 0)
    assert shared_date(rows[:10]) == ("", 0)


@pytest.mark.parametrize("end", ["#chunk3", "#chunk-1", "/0", "_1", "::12", "#s"])
@pytest.mark.parametrize("source", ["human", "llm:gpt-4o", "llm:meta-llama/Llama-3-8b"])
def test_a_chunk_has_the_source_of_its_document(source: str, end: str) -> None:
    assert IdTagger()(f"d1@{source}{end}", "", {}) == DocTags(source=source, origin="declared")
    whole = DocTags(source=source, pair_id="d1", origin="declared")
    assert IdTagger()(f"d1#{source}", "", {}) == whole


def says(source: str, origin: str):
    def tagger(doc_id: str, text: str, metadata: object) -> DocTags:
        return DocTags(source=source, origin=origin)  # type: ignore[arg-type]

    return tagger


def test_contradictions_are_counted_and_the_first_tagger_decides() -> None:
    rows = [
        ("a", "x", {"year": 2001}),
        ("b", "x", {"year": 2025}),
        ("c@llm:x", "x", {"year": 2001}),
    ]
    taggers = [DateTagger("2022"), IdTagger(), says("llm:any", "detected")]
    conflicts: Counter[tuple[str, str]] = Counter()
    tags = dict(tag_documents(rows, taggers, conflicts=conflicts))
    assert [tags[d].source for d in ("a", "b", "c@llm:x")] == ["human", "llm:any", "human"]
    assert conflicts == {("provenance", "detected"): 2, ("provenance", "declared"): 1}


def test_a_model_and_any_model_do_not_contradict() -> None:
    conflicts: Counter[tuple[str, str]] = Counter()
    taggers = [says("llm:gpt-4", "declared"), says("llm:any", "detected")]
    list(tag_documents([("a", "x", {})], taggers, conflicts=conflicts))
    assert not conflicts
    list(
        tag_documents(
            [("a", "x", {})], [*taggers, says("llm:b", "provenance")], conflicts=conflicts
        )
    )
    assert conflicts == {("declared", "provenance"): 1}


def test_a_pass_counts_how_sources_are_known(tmp_path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text('{"_id": "a", "text": "x", "year": 2001}\n{"_id": "b@human", "text": "y"}\n')
    store = open_document_store(f"corpus:{file}")
    taggers = [DateTagger("2022"), IdTagger(), says("llm:any", "detected")]
    for opened, dry in ((store, True), (SidecarStore(store, tmp_path / "t.sqlite"), False)):
        found = tag_store(opened, taggers, dry_run=dry)
        assert found.origins == {"declared": 1, "provenance": 1}
        assert found.conflicts == {("provenance", "detected"): 1, ("declared", "detected"): 1}
