"""Values of ``--prompts``."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.rewrite_command import read_prompts
from rag_sourcebias.pairs.rewrites import REPHRASE, REWRITE, STYLES


def test_names_groups_and_several_values_keep_their_order() -> None:
    assert read_prompts(["rewrite"]) == (REWRITE,)
    assert read_prompts(["rephrase"]) == REPHRASE
    assert read_prompts(["styles"]) == STYLES
    assert read_prompts(["style-3, rephrase-1", "rewrite"]) == (STYLES[3], REPHRASE[0], REWRITE)


def test_templates_of_ones_own() -> None:
    bare, named = read_prompts(["Shorten, please: {text}", "a.b=Say x=1 again:\n{text}"])
    assert (bare.name, bare.template) == ("prompt-1", "Shorten, please: {text}")
    assert (named.name, named.template) == ("a.b", "Say x=1 again:\n{text}")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["stlye-3"], ["'stlye-3' is no prompt", "style-0", "style-8", "{text}"]),
        (["style-9"], ["'style-9' is no prompt"]),
        ([","], ["there are none"]),
        (["Please rewrite this"], ["must hold {text}", "Please rewrite this"]),
        (["Rewrite {text} for {query}"], ["{query}", "must not know the query"]),
        (["{text} and {text}"], ["exactly once"]),
        (["styles", "style-2"], ["'style-2' occurs twice"]),
    ],
)
def test_what_is_wrong_is_named(values: list[str], words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_prompts(values)
    for word in words:
        assert word in str(caught.value)
