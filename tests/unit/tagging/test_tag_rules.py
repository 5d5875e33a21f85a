"""Tag rules: conditions, order, files of them with their errors, and the identity of taggers."""

import subprocess
import sys
from pathlib import Path

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.documents import tag_documents, taggers_fingerprint
from rag_sourcebias.tagging.rules import (
    Condition,
    IdTagger,
    ProvenanceTagger,
    RuleTagger,
    TagRule,
    read_rules,
)


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
        ("regex", "a{99999999999999999999}", "not a regular expression: the repetition number"),
        ("regex", "", "non-empty text"),
        ("in", [], "not a list"),
        ("equals", ["x"], "not one text"),
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


# Rule files: what they may say, and errors with file, line and key


GOOD = r"""
rules:
  - name: bot
    when:
      metadata:
        generator: {regex: '^gpt-(?P<model>.+)$'}
        lang: [en, de]
        crawl.agent: {present: false}
      url_host: {glob: '*.example.com'}
      id: {regex: '^(?P<original>.+)-rewrite$'}
    set: {source: "llm:gpt-{model}", pair_id: "{original}", style: news}
  - when: {metadata: {author: Ann}}
    set: {source: human}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "rules.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_rule_file_tags(tmp_path: Path) -> None:
    tagger = RuleTagger(read_rules(write(tmp_path, GOOD)))
    metadata = {"generator": "gpt-4o", "lang": "de", "url": "https://a.example.com/x"}
    tags = tagger("q7-rewrite", "text", metadata)
    assert (tags.source, tags.pair_id, tags.style) == ("llm:gpt-4o", "q7", "news")
    assert tagger("q7-rewrite", "text", metadata | {"crawl": {"agent": "x"}}) is None
    assert tagger("d", "text", {"author": "Ann"}).source == "human"
    assert tagger.matched == {"bot": 1, "rule 2": 1}


RULE = "rules:\n  - when: {{metadata: {{a: {test}}}}}\n    set: {{source: human}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"rules.yaml: None; expected a mapping with keys out of \['rules'\]"),
        ("- a\n", r"rules.yaml: \['a'\]; expected a mapping with keys out of \['rules'\]"),
        ("rule:\n  - x\n", r": unknown key 'rule'; accepted: .*; did you mean rules\?"),
        ("rules: []\n", r": rules: \[\]; expected a list with at least one"),
        ("rules: [x]\n", r":1: rules\[1\]: the rule: 'x'; expected a mapping"),
        ("rules:\n  - when: {id: x}\n", r":2: rules\[1\]: the rule: the key 'set' is missing"),
        (
            "rules:\n  - when: {id: x}\n    set: {sorce: human}\n",
            r":2: rules\[1\]: set: unknown key 'sorce'; .*; did you mean source\?",
        ),
        (
            "rules:\n  - when:\n      metadata:\n        a: {regx: x}\n    set: {source: human}\n",
            r":2: rules\[1\]: a: unknown key 'regx'; .*; did you mean regex\?",
        ),
        (
            RULE.format(test="{regex: '('}"),
            r":2: rules\[1\]: a: regex: '\(' is not a regular expression",
        ),
        (
            RULE.format(test="{regex: '" + "(" * 5_000 + "'}"),
            r"^.{,400}is not a regular expression: its brackets are nested too deep.{,100}$",
        ),
        (
            RULE.format(test="{" + "k" * 1_000 + ": 1}"),
            r"^.{,1300}unknown key 'k{199};.{,200}$",
        ),
        (RULE.format(test="{present: maybe}"), r"a: present: 'maybe' is not true or false"),
        (RULE.format(test="{in: x}"), r"a: in: 'x' is not a list of texts or numbers"),
        (RULE.format(test="{equals: x, glob: y}"), r"2 tests .*expected exactly one"),
        ("rules:\n  - when: {metadata: x}\n    set: {style: a}\n", "metadata: 'x'; expected"),
        (
            "rules:\n  - when: {id: x}\n    set:\n      style: a\n      source: gpt-4\n",
            r":2: rules\[1\]: source 'gpt-4' is not a source name; expected 'human'",
        ),
        (
            "rules:\n  - when: {id: x}\n    set: {style: a}\n"
            "  - when: {id: x}\n    set: {style: 3}\n",
            r":4: rules\[2\]: style: 3; expected a text \(quote",
        ),
        (
            "rules:\n  - when: {id: x}\n    when: {id: y}\n    set: {source: human}\n",
            r"a key stands twice.* line 2",
        ),
        (
            "rules:\n  - when: {id: x}\n    set: {pair_id: '{1}'}\n",
            r":2: rules\[1\]: rule 'rule 1'.*group \{1\}",
        ),
        ("rules: [\n", r"rules.yaml is not a YAML file of tag rules .* line 2"),
        ("rules: !!python/object:os.system x\n", "could not determine a constructor"),
        ("[" * 5_000, "is not a YAML file of tag rules"),
        ("a: &a [*a]\n" + "{" * 5_000, "is not a YAML file of tag rules"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_rules(write(tmp_path, text))


def test_a_date_that_is_not_quoted_is_a_text(tmp_path: Path) -> None:
    text = "rules:\n  - when: {metadata: {day: 2021-05-01}}\n    set: {source: human}\n"
    (rule,) = read_rules(write(tmp_path, text))
    assert rule.conditions[0].value == "2021-05-01"


def test_a_binary_file(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"rules: \xff\xfe")
    with pytest.raises(
        DataError, match=r"latin\.yaml is not a YAML file of tag rules .*position 7"
    ):
        read_rules(file)


# The identity of taggers: the same for the same tags, another one for others


def rules(value: object = "bot", *, name: str = "r", source: str = "llm:x"):
    condition = Condition(target="metadata", key="author", operator="equals", value=value)
    return RuleTagger([TagRule(name=name, conditions=[condition], source=source)])


def test_equal_rules_are_equal_whatever_they_are_called_and_have_counted() -> None:
    used = rules(name="other")
    used("d", "", {"author": "bot"})
    assert taggers_fingerprint(used) == taggers_fingerprint(rules())


@pytest.mark.parametrize(
    "other",
    [
        rules("b0t"),
        rules(source="llm:y"),
        rules(True),
        [rules(), IdTagger()],
        IdTagger(),
    ],
)
def test_what_tags_differently_is_another(other: object) -> None:
    assert taggers_fingerprint(other) != taggers_fingerprint(rules())


def test_true_is_not_one_and_a_set_has_no_order() -> None:
    assert rules(True).fingerprint != rules(1).fingerprint

    def within(value: object) -> str:
        condition = Condition(target="metadata", key="k", operator="in", value=value)
        return RuleTagger([TagRule(name="r", conditions=[condition], source="human")]).fingerprint

    assert within({"a", "b", "c"}) == within({"c", "b", "a"})
    assert within(["a", "b"]) != within(["b", "c"])


def test_ids_know_their_pattern() -> None:
    taggers = (IdTagger(), IdTagger(r"(?P<source>\w+)$"), ProvenanceTagger())
    assert len({tagger.fingerprint for tagger in taggers}) == 3


def test_it_is_the_same_in_another_process() -> None:
    code = (
        "from rag_sourcebias.tagging import IdTagger\n"
        "from rag_sourcebias.tagging.documents import taggers_fingerprint\n"
        "print(taggers_fingerprint([IdTagger('(?P<style>.)')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tagger = IdTagger("(?P<style>.)")
    assert done.stdout.strip() == taggers_fingerprint(tagger)
    assert len(taggers_fingerprint(tagger)) == 16


def test_an_object_has_to_say_who_it_is() -> None:
    class Mine:
        def __call__(self, doc_id: str, text: str, metadata: object) -> None:
            return None

    mine = Mine()
    with pytest.raises(DataError, match=r"a tagger \(Mine\) has no fingerprint; give it"):
        taggers_fingerprint(mine)
    mine.fingerprint = "mine:1"  # type: ignore[attr-defined]
    assert taggers_fingerprint(mine)


def test_no_taggers_are_refused() -> None:
    with pytest.raises(DataError, match="no taggers; expected at least one"):
        taggers_fingerprint([])
