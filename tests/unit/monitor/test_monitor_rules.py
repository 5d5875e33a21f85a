"""Rule files are written where one asks for them, and not over someone's own."""

from pathlib import Path

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.metrics import read_rules, write_rules


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "alerts.yml").write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match=r"has alerts\.yml already; say overwrite=True"):
        write_rules(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["alerts.yml"]
    write_rules(tmp_path, overwrite=True)
    assert (tmp_path / "alerts.yml").read_text(encoding="utf-8") == read_rules("alerts.yml")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="rule files cannot be written to"):
        write_rules(tmp_path / "file" / "folder")
