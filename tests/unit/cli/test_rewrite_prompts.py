"""Values of ``--prompts``."""

from __future__ import annotations

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
