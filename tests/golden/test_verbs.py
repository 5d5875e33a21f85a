"""Commands print what they printed when their outputs were reviewed.

After a change that is meant, and looked at, ``python tests/golden/verbs.py NAME`` stores what they
print anew. Commands that need a model, a server or a vector store have tests in ``tests/e2e``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from verbs import FOLDER, VERBS, prepared, printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("verbs"))


@pytest.mark.parametrize("name", VERBS)
def test_a_command_prints_what_it_printed(name: str, folder: Path) -> None:
    assert printed(name, folder) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_stored_output_belongs_to_a_command() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(VERBS)


def test_another_number_is_seen(folder: Path) -> None:
    items = folder / "items.csv"
    kept = items.read_text(encoding="utf-8")
    items.write_text(kept.replace("i1,1,", "i1,0,").replace("i2,1,", "i2,0,"), encoding="utf-8")
    try:
        text = printed("interval", folder)
    finally:
        items.write_text(kept, encoding="utf-8")
    assert text != (FOLDER / "interval.txt").read_text(encoding="utf-8")
