"""Rule files: what they may say, and errors with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.rules import RuleTagger, read_rules

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


def test_doc_of_the_module_is_a_rule_file(tmp_path: Path) -> None:
    from rag_sourcebias.tagging import rules as rule_file

    block = rule_file.__doc__.split("::\n", 1)[1]
    assert [rule.name for rule in read_rules(write(tmp_path, block))] == ["house bot"]


RULE = "rules:\n  - when: {{metadata: {{a: {test}}}}}\n    set: {{source: human}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"rules.yaml: None; expected a mapping with keys out of \['rules'\]"),
        ("# only a comment\n", "None; expected a mapping"),
        ("- a\n", r"rules.yaml: \['a'\]; expected a mapping with keys out of \['rules'\]"),
        ("rule:\n  - x\n", r": unknown key 'rule'; accepted: .*; did you mean rules\?"),
        ("rules: []\n", r": rules: \[\]; expected a list with at least one"),
        ("rules:\n", r": rules: None; expected a list"),
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
        (RULE.format(test="[[x]]"), r"a: in: \[\['x'\]\] is not a list of texts"),
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
        (
            "rules:\n  - when: {id: !!python/name:os.system x}\n    set: {style: a}\n",
            "could not determine a constructor",
        ),
        ("a: 1\n---\nb: 2\n", "is not a YAML file of tag rules"),
        ("[" * 5_000, "is not a YAML file of tag rules"),
        ("- " * 3_000, "is not a YAML file of tag rules"),
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


def test_a_missing_file_and_a_binary_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.yaml does not exist"):
        read_rules(tmp_path / "no.yaml")
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"rules: \xff\xfe")
    with pytest.raises(
        DataError, match=r"latin\.yaml is not a YAML file of tag rules .*position 7"
    ):
        read_rules(file)
