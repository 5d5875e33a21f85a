"""Every renderer says of stored reports what it said when they were reviewed.

One report of each kind is stored with what was made of them. After a change that
is meant, and looked at, ``python tests/golden/rendering.py NAME`` stores its outputs anew.
"""

from __future__ import annotations

import re

import pytest
from rendering import FOLDER, NAMES, SHOWN, html, rendered


@pytest.mark.parametrize("name", SHOWN)
def test_a_stored_report_is_shown_as_it_was(name: str) -> None:
    for file, text in rendered(name).items():
        assert text == (FOLDER / file).read_text(encoding="utf-8"), file


def test_there_is_one_of_each_kind() -> None:
    kinds = {"skew", "style", "answers", "debias", "explain", "judged", "pairs"}
    assert {name.partition("-")[0] for name in NAMES} == kinds


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (r"favours", "ranks"),
        (r"(\d)\.(?!\1)(\d)", r"\2.\1"),
        (r"</td>", ""),
        (r"class=\"card", 'class="'),
    ],
)
def test_a_page_that_says_something_else_is_seen(change: str, by: str) -> None:
    stored = (FOLDER / "skew-full.html").read_text(encoding="utf-8")
    assert html(stored) == stored
    assert html(re.sub(change, by, stored, count=1)) != stored
