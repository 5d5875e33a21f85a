"""Values of ``--prompts``."""

from __future__ import annotations

from pathlib import Path

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


def test_a_yaml_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "short: 'Shorten: {text}'\nplain:\n  style: simple\n  template: |\n    Two lines.\n"
        "    {text}\n",
        encoding="utf-8",
    )
    short, plain, styled = read_prompts([str(file), "style-1"])
    assert (short.name, short.template, short.style) == ("short", "Shorten: {text}", None)
    assert (plain.template, plain.style) == ("Two lines.\n{text}", "simple")
    assert styled == STYLES[1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["stlye-3"], ["'stlye-3' is no prompt", "style-0 to style-8", "{text}"]),
        (["style-9"], ["'style-9' is no prompt"]),
        ([","], ["there are none"]),
        (["Please rewrite this"], ["must hold {text}", "Please rewrite this"]),
        (["Rewrite {text} for {query}"], ["{query}", "must not know the query"]),
        (["{text} and {text}"], ["exactly once"]),
        (["styles", "style-2"], ["'style-2' occurs twice"]),
        (["no.yaml"], ["no.yaml does not exist"]),
    ],
)
def test_what_is_wrong_is_named(values: list[str], words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_prompts(values)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a\n", [":1:", "expected a mapping"]),
        ("a: 'x {text}'\na: 'y {text}'\n", [":2:", "stands twice, first in line 1"]),
        ("a: 'x {text}'\nb:\n  template: no place\n", [":3:", "'b' must hold {text}"]),
        ("a: {text: x}\n", [":1:", "unknown key 'text'"]),
        ("a b: 'x {text}'\n", [":1:", "prompt name 'a b'"]),
        ("a: [x\n", ["not YAML"]),
    ],
)
def test_errors_in_a_yaml_file_name_the_line(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_prompts([str(file)])
    for word in ("mine.yml", *words):
        assert word in str(caught.value)
