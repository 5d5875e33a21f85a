"""No decision reads prose: what was found is a code or a number, and sentences are made last."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = (ROOT / "src", ROOT / "integrations")
PROSE = {
    "caveat", "caveats", "headline", "message", "method", "note", "notes", "reason", "reasons",
    "refusal", "sentence", "short", "verdict", "warning", "warnings",
}  # fmt: skip
LOOKING = {
    "startswith", "endswith", "partition", "rpartition", "split", "rsplit", "find", "rfind",
    "index", "removeprefix", "removesuffix", "casefold", "lower",
}  # fmt: skip


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def decisions(source: str) -> list[int]:
    """Lines that look for words in something that is said."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in LOOKING and name_of(node.func.value) in PROSE:
                found.append(node.lineno)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            words = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            if words and name_of(node.comparators[0]) in PROSE:
                found.append(node.lineno)
    return found


def test_no_module_looks_for_words_in_what_is_said() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for root in ROOTS
        for path in sorted(root.rglob("*.py"))
        for line in decisions(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'useless = "no better than none" in note',
        'alone = interval.method.startswith("labels alone")',
        'first = report.refusal.partition(". ")[0]',
        'if "inversion" not in found.notes: pass',
    ],
)
def test_such_a_line_is_seen(line: str) -> None:
    assert decisions(line) == [1]


@pytest.mark.parametrize(
    "line", ['if interval.method == "delta": pass', 'found = "a" in names', "text = note.strip()"]
)
def test_codes_and_other_texts_are_no_prose(line: str) -> None:
    assert decisions(line) == []
