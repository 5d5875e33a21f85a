"""Whoever says that a package is missing names an extra of ours that installs it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from rag_sourcebias.core.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
FILES = [file for name in ("src", "integrations") for file in sorted((ROOT / name).rglob("*.py"))]
EXTRAS = {
    name: {re.split(r"[^\w.-]", need)[0].lower() for need in needs}
    for name, needs in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ].items()
}
# What a call passes on under these names was checked where it began; pandas and polars are both.
PASSED_ON = ("extra", "self.extra", "package")


def wrong(code: str) -> Iterator[str]:
    """Yield calls that name no extra, one that is not there, or one without the package."""
    tree = ast.parse(code)
    tuples = {
        f"*{ast.unparse(found.targets[0])}": found.value.elts
        for found in ast.walk(tree)
        if isinstance(found, ast.Assign) and isinstance(found.value, ast.Tuple)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        given = {word.arg: word.value for word in call.keywords if word.arg}
        if name == "import_extra":
            args = [part for arg in call.args for part in tuples.get(ast.unparse(arg), [arg])]
            given |= zip(("package", "extra"), args[1:], strict=False)
        if name in ("MissingExtraError", "import_extra") and "extra" not in given:
            yield ast.unparse(call)
        if "extra" not in given:
            continue
        extra, package = given["extra"], given.get("package")
        if not isinstance(extra, ast.Constant):
            if ast.unparse(extra) not in PASSED_ON:
                yield ast.unparse(call)
        elif extra.value not in EXTRAS or (
            isinstance(package, ast.Constant)
            and re.split(r"\[", package.value)[0].lower() not in EXTRAS[extra.value]
        ):
            yield ast.unparse(call)


def test_missing_packages_come_with_an_extra_that_holds_them() -> None:
    found = {str(f.relative_to(ROOT)): [*wrong(f.read_text("utf-8"))] for f in FILES}
    assert {file: calls for file, calls in found.items() if calls} == {}


def test_a_wrong_extra_is_seen() -> None:
    for code in (
        "raise MissingExtraError(package='sacrebleu', feature='x')",
        "raise MissingExtraError(package='sacrebleu', extra='quick', feature='x')",
        "raise MissingExtraError(package='sacrebleu', extra='report', feature='x')",
        "import_extra('bm25s', 'bm25s', 'search', 'BM25')",
        "import_extra('bm25s', 'bm25s')",
        "require('ray', package='ray', extra=whatever, feature='x')",
    ):
        assert [*wrong(code)], code
    assert not [*wrong("raise MissingExtraError(package='sacrebleu', extra='text', feature='x')")]
    assert "[text]" in str(MissingExtraError(package="sacrebleu", extra="text", feature="x"))
