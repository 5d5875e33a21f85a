"""Frames as Markdown and LaTeX: cells as they are read, names that start nothing."""

from __future__ import annotations

import csv
import io
import re

import pytest

from rag_sourcebias.core.finding import Frame

HOSTILE = r"\input{x} $y$ a_b & 5% #1 ~ ^ <b> | [l](u) `c` *"
FRAME = Frame(
    columns={"system": ("[x]", HOSTILE, "two\nlines"), "delta": (1.5, -2.25, None), "n": (1, 2, 3)},
    heads={"delta": "Relative Δ_"},
    formats={"delta": "signed"},
)


def test_markdown_shows_cells_as_they_are_read() -> None:
    head, rule, *rows = FRAME.to_markdown().splitlines()
    assert head == r"| system | Relative Δ\_ | n |"
    assert rule == "|-|-:|-:|"
    assert rows[0] == r"| \[x\] | +1.5 | 1 |"
    assert rows[2] == "| two lines | – | 3 |"
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)
    assert Frame(columns={"a": ()}).to_markdown() == ""


def test_latex_is_a_tabular_with_rules() -> None:
    lines = FRAME.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}"
    assert [lines[i] for i in (1, 3, -2, -1)] == [
        r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    assert lines[2] == r"system & Relative Δ\_ & n \\"
    # a bracket after the end of a row would be an option of it
    assert lines[4] == r"{}[x] & +1.5 & 1 \\"
    assert lines[6] == r"two lines & – & 3 \\"
    assert lines[5].endswith(r"& $-$2.2 & 2 \\")
    body = lines[5].removesuffix(r"\\")
    body = re.sub(r"\\(?:textbackslash|text\w+|ascii\w+)\{\}|\\[&%$#_{}]|\$-\$", "", body)
    assert not re.search(r"[\\$#%~^_{}<>|]", body)
    assert body.count("&") == 2


@pytest.mark.parametrize("width", [1, 2, 5])
def test_rows_of_every_format_are_those_of_the_frame(width: int) -> None:
    frame = Frame(columns={f"c{i}": (i, 2 * i) for i in range(width)})
    assert len(frame.to_markdown().splitlines()) == 4
    assert len(frame.to_latex().splitlines()) == 8
    assert len(list(csv.reader(io.StringIO(frame.to_csv())))) == 3
