"""Prompts of the papers, and what a user's own may hold."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.rewrites import REPHRASE, REWRITE, STYLES, RewritePrompt, checked_prompts


def test_the_default_prompt_is_that_of_the_paper() -> None:
    assert REWRITE.fill("Water.") == "Please rewrite the following text: Water."


def test_nine_rephrase_prompts_and_nine_styles_that_all_differ() -> None:
    assert [p.name for p in REPHRASE] == [f"rephrase-{i}" for i in range(1, 10)]
    assert [p.style for p in STYLES] == [str(i) for i in range(9)]
    filled = {p.fill("T") for p in (*REPHRASE, *STYLES)}
    assert len(filled) == 18
    assert REPHRASE[8].fill("T") == (
        "Express the following text in a different way while keeping its intent: T"
    )
    assert STYLES[0].template == REWRITE.template
    assert STYLES[6].fill("T") == (
        "Your writing style is energetic, motivational, and positive manner."
        "\n\nPlease rewrite the following text: T"
    )


def test_braces_in_the_text_and_in_the_template_mean_nothing() -> None:
    prompt = RewritePrompt(name="json", template='As {"a": 1} or {}: {text}!')
    assert prompt.fill("{text} {query}") == 'As {"a": 1} or {}: {text} {query}!'


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("Answer {query} from {text}", "must not know the query"),
        ("Answer { Query_text } from {text}", "must not know the query"),
        ("{title}: {text}", r"asks for \{title\}; there is only the text"),
        ("Rewrite it", "exactly once"),
        ("{text} and {text}", "exactly once"),
        ("Rewrite {{text}}", "in single braces"),
    ],
)
def test_other_templates_are_refused(template: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        RewritePrompt(name="mine", template=template)


def test_names_and_lists_are_checked() -> None:
    assert [p.name for p in checked_prompts(["A {text}", REWRITE])] == ["prompt-1", "rewrite"]
    with pytest.raises(DataError, match="prompt names must differ, 'rewrite' occurs 2 times"):
        checked_prompts([REWRITE, REWRITE])
    with pytest.raises(DataError, match="there are none"):
        checked_prompts([])
    with pytest.raises(DataError, match="not one string"):
        checked_prompts("A {text}")
    with pytest.raises(DataError, match="prompt name 'a/b'"):
        RewritePrompt(name="a/b", template="{text}")
