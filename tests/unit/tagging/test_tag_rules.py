"""Tag rules: conditions, order, groups, several taggers together."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.documents import tag_documents
from rag_sourcebias.tagging.rules import Condition, IdTagger, RuleTagger, TagRule


def meta(key: str, operator: str, value: object) -> Condition:
    return Condition(target="metadata", key=key, operator=operator, value=value)


def holds(condition: Condition, metadata: dict, doc_id: str = "d", text: str = "t") -> bool:
    return bool(condition.match(doc_id, text, metadata, metadata.get("url")))


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        (meta("a", "equals", "x"), {"a": "x"}, {"a": "X"}),
        (meta("a", "equals", 1), {"a": 1}, {"a": True}),
        (meta("a", "equals", "x"), {"a": ["y", "x"]}, {"a": ["y"]}),
        (meta("a", "in", ["x", 2]), {"a": 2}, {"a": "2"}),
        (meta("a", "regex", "^gpt"), {"a": "gpt-4o"}, {"a": "not gpt"}),
        (meta("a", "regex", "none"), {"a": "none"}, {"a": None}),
        (meta("a", "glob", "gpt-*"), {"a": "gpt-4o"}, {"a": "xgpt-4o"}),
        (meta("a.b", "equals", "x"), {"a": {"b": "x"}}, {"a": "x"}),
        (meta("a.b", "equals", "x"), {"a.b": "x"}, {}),
        (meta("a", "present", True), {"a": ""}, {"a": None}),
        (meta("a", "present", False), {}, {"a": 0}),
        (
            Condition(target="url_host", operator="glob", value="*.example.com"),
            {"url": "https://me:pw@Blog.Example.com:8443/p?q=http://x.org"},
            {"url": "https://x.org/?u=https://blog.example.com"},
        ),
        (
            Condition(target="url_host", operator="regex", value="."),
            {"url": "ftp://h/p"},
            {"url": "/a/local/path"},
        ),
    ],
)
def test_conditions(condition: Condition, yes: dict, no: dict) -> None:
    assert holds(condition, yes)
    assert not holds(condition, no)


def test_id_and_text_are_searched() -> None:
    assert holds(Condition(target="id", operator="regex", value="^d"), {}, doc_id="d1")
    assert holds(
        Condition(target="text", operator="regex", value="(?i)LANGUAGE"), {}, text="language"
    )
    assert not holds(Condition(target="text", operator="glob", value="lang"), {}, text="language")


@pytest.mark.parametrize(
    ("operator", "value", "message"),
    [
        ("regex", "(", "not a regular expression"),
        ("regex", "(" * 5_000, r"'\({199} is not .* brackets are nested too deep; expected"),
        ("regex", "a{99999999999999999999}", "not a regular expression: the repetition number"),
        ("regex", "", "non-empty text"),
        ("in", "abc", "not a list"),
        ("in", [], "not a list"),
        ("equals", ["x"], "not one text"),
        ("present", "yes", "true or false"),
        ("like", "x", "operator 'like' is not one of"),
    ],
)
def test_a_bad_condition_is_refused(operator: str, value: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        meta("a", operator, value)


def test_the_first_rule_decides_each_field_and_rules_are_counted() -> None:
    tagger = RuleTagger(
        [
            TagRule(name="style", conditions=[meta("kind", "equals", "faq")], style="faq"),
            TagRule(
                name="gpt",
                conditions=[meta("generator", "regex", r"^gpt-(?P<model>\w+)$")],
                source="llm:gpt-{model}",
                style="plain",
            ),
            TagRule(name="rest", conditions=[meta("author", "present", True)], source="human"),
        ]
    )
    assert tagger("1", "", {"kind": "faq", "generator": "gpt-4o", "author": "Ann"}) == DocTags(
        source="llm:gpt-4o", style="faq", origin="declared"
    )
    assert tagger("2", "", {"author": "Ann"}) == DocTags(source="human", origin="declared")
    assert tagger("3", "", {"kind": "faq"}) == DocTags(style="faq")
    assert tagger("4", "", {}) is None
    assert tagger.matched == {"style": 2, "gpt": 1, "rest": 1}


def test_a_group_that_is_no_source_is_an_error_naming_the_rule() -> None:
    rule = TagRule(name="r", conditions=[meta("by", "regex", "(?P<w>.+)")], source="{w}")
    assert RuleTagger([rule])("d", "", {"by": "human"}) == DocTags(
        source="human", origin="declared"
    )
    with pytest.raises(DataError, match=r"document 'd7'.*rule 'r'.*'Human' is not a source name"):
        list(tag_documents([("d7", "", {"by": "Human"})], [RuleTagger([rule])]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "gpt"}, "'gpt' is not a source name; expected 'human' or 'llm:<model>'"),
        ({"source": "llm:"}, "not a source name"),
        ({}, "tags nothing"),
        ({"style": "{2}"}, r"group \{2\}.*groups are \['a'\]"),
        ({"source": "human", "conditions": []}, "no condition"),
    ],
)
def test_a_bad_rule_is_refused(options: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TagRule(**({"name": "r", "conditions": [meta("x", "regex", "(?P<a>.)")]} | options))


def test_the_first_tagger_that_knows_decides_each_field() -> None:
    def detector(doc_id: str, text: str, metadata: object) -> DocTags:
        return DocTags(source="llm:x", style="news", origin="detected", confidence=0.7)

    def provenance(doc_id: str, text: str, metadata: object) -> DocTags | None:
        return DocTags(origin="provenance") if doc_id == "mixed" else None

    documents = [("d1@human", "", {}), ("d2", "", {}), ("mixed", "", {})]
    tagged = dict(tag_documents(documents, [IdTagger(), provenance, detector]))
    assert tagged["d1@human"] == DocTags(
        source="human", style="news", pair_id="d1", origin="declared"
    )
    assert tagged["d2"].confidence == 0.7
    assert tagged["mixed"].origin == "detected"
    alone = dict(tag_documents(documents, [provenance, IdTagger()]))
    assert alone["mixed"] == DocTags(origin="provenance")
    assert alone["d2"] == DocTags()


def test_a_tagger_that_raises_or_returns_nonsense_is_named_with_the_document() -> None:
    def broken(doc_id: str, text: str, metadata: dict) -> DocTags:
        return metadata["missing"]

    def wrong(doc_id: str, text: str, metadata: dict) -> object:
        return "human"

    with pytest.raises(
        DataError, match=r"document 'd1': tagger .*broken raised KeyError: 'missing'"
    ):
        list(tag_documents([("d1", "", {})], [broken]))
    with pytest.raises(DataError, match=r"document 'd1': tagger .*wrong returned 'human' \(str\)"):
        list(tag_documents([("d1", "", {})], [wrong]))


@pytest.mark.parametrize(
    ("doc_id", "expected"),
    [
        ("d1#llm:gpt-4o", ("d1", "llm:gpt-4o")),
        ("a@b@human", ("a@b", "human")),
        ("x#human", ("x", "human")),
    ],
)
def test_default_id_pattern(doc_id: str, expected: tuple[str, str]) -> None:
    tags = IdTagger()(doc_id, "", {})
    assert (tags.pair_id, tags.source) == expected
    assert tags.origin == "declared"


def test_other_ids_stay_unknown() -> None:
    assert [IdTagger()(i, "", {}) for i in ("d1", "me@example.org", "d#llm:", "#human")] == [
        None
    ] * 4


def test_own_id_patterns() -> None:
    by_word = IdTagger(r"^(?P<pair_id>\d+)_(?P<source>\w+)$")
    assert by_word("3_human", "", {}).source == "human"
    with pytest.raises(DataError, match=r"document '3_gen'.*'gen' is not a source name"):
        list(tag_documents([("3_gen", "", {})], [by_word]))
    by_model = IdTagger(r"^(?P<pair_id>\d+)(?:-(?P<model>\w+))?$")
    assert by_model("3-phi", "", {}) == DocTags(source="llm:phi", pair_id="3", origin="declared")
    assert by_model("3", "", {}) == DocTags(pair_id="3")


@pytest.mark.parametrize("pattern", ["(", "(.+)", "(?P<src>.)", "(?P<source>.)(?P<model>.)"])
def test_a_bad_id_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(DataError, match="id pattern"):
        IdTagger(pattern)
