"""What a name may hold, and how text is shown."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_sourcebias.core.errors import DataError, require_name, visible

OVERRIDES = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
FORBIDDEN = OVERRIDES | {"\ufffe", "\uffff"}
# Joiners, marks of right-to-left text, a no-break space, an emoji of several code points.
GOOD = ["human", "llm:größe", "می‌خواهم", "שלום\u200f", "a\u00a0b", "👩‍🔬", "模型 α", "x\ufeffy", ""]


def forbidden(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in FORBIDDEN


def all_characters() -> list[str]:
    return [chr(code) for code in range(0x11_0000)]


def test_every_character_is_shown_or_written_out_and_names_may_hold_those_shown() -> None:
    for character in all_characters():
        bad = forbidden(character)
        assert (visible(character) != character) == bad, hex(ord(character))
        in_text = bad and character not in "\t\n"
        assert (visible(character, lines=True) != character) == in_text, hex(ord(character))


@pytest.mark.parametrize("name", GOOD)
def test_names_of_all_scripts_pass(name: str) -> None:
    assert require_name(name, "source") == name == visible(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("\x1b[31mred", ("'\\u001b[31mred'", "U+001B, a control character")),
        ("a\nb", ("'a\\u000ab'", "U+000A, a line break")),
        ("a\u202eb", ("'a\\u202eb'", "U+202E, which turns the direction of text")),
        ("a\ud800", ("'a\\ud800'", "U+D800, half of a surrogate pair")),
        ("a\ufffe", ("'a\\ufffe'", "U+FFFE, no character")),
    ],
)
def test_a_refusal_names_the_value_and_the_place_and_can_itself_be_shown(
    name: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as caught:
        require_name(name, "source", "od\x07d.tsv:7")
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith("od\\u0007d.tsv:7: source '")
    for word in words:
        assert word in message


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_json_that_was_written_out_holds_the_same_value(text: str) -> None:
    shown = visible(json.dumps([text], ensure_ascii=False))
    assert not any(map(forbidden, shown))
    assert json.loads(shown)[0].encode("utf-16", "surrogatepass") == text.encode(
        "utf-16", "surrogatepass"
    )
