"""The identity of taggers: the same for the same tags, another one for others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.documents import taggers_fingerprint
from rag_sourcebias.tagging.rules import Condition, IdTagger, ProvenanceTagger, RuleTagger, TagRule


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
    pattern = r"(?P<source>\w+)$"
    assert (
        len(
            {
                IdTagger().fingerprint,
                IdTagger(pattern).fingerprint,
                ProvenanceTagger().fingerprint,
            }
        )
        == 3
    )


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
