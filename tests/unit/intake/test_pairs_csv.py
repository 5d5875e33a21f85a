"""Values of all pairs as CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import read_csv

from rag_sourcebias.pairs.checks import check_pairs
from rag_sourcebias.pairs.files import pair_files, write_pair_checks
from rag_sourcebias.pairs.findings import reasons_of

HUMAN = "The price was 55 crowns in Ghent, and it rose by 3 crowns in the year 1999."
OTHER = "In Ghent the price stood at 55 crowns before, in the year 1999, rising a bit."


def test_every_value_comes_back(tmp_path: Path) -> None:
    ids = ["d1", "שלום 😀", '=1+1,"x"', "copy"]
    checks = check_pairs([HUMAN] * 3 + [""], [OTHER, OTHER, HUMAN, "x"], pair_ids=ids)
    write_pair_checks(checks, tmp_path / "pairs.csv")
    rows = read_csv(tmp_path / "pairs.csv")
    assert [row["pair_id"].removeprefix("'") for row in rows] == ids
    assert rows[2]["pair_id"].startswith("'=")  # no formula in a spreadsheet
    for row, record in enumerate(rows):
        ratio = record["length_ratio"]
        assert (ratio == "") == (row == 3)
        if ratio:
            assert float(ratio) == pytest.approx(checks.values["length_ratio"][row], abs=1e-4)
            assert float(record["jaccard"]) == pytest.approx(
                checks.values["jaccard"][row], abs=1e-4
            )
        assert record["cosine"] == ""
        reasons = reasons_of(checks.pair(row), checks.thresholds, checks.by_chance)
        assert record["reasons"] == " | ".join(map(str, reasons))
        assert (record["broken"] == "yes") == bool(checks.broken[row])
    assert rows[0]["numbers_missing"] == "3 crowns" or "3" in rows[0]["numbers_missing"]
    assert rows[2]["flags"] == "copy"
    assert rows[3]["flags"] == "empty"


def test_names_of_files_are_safe_and_differ() -> None:
    found = pair_files(["llm:org/model", "llm:x", "x", "llm:..\\up", "ünï😀"])
    assert found == {
        "llm:org/model": "pairs-org%2Fmodel.csv",
        "llm:x": "pairs-llm%3Ax.csv",
        "x": "pairs-x.csv",
        "llm:..\\up": "pairs-..%5Cup.csv",
        "ünï😀": "pairs-ünï😀.csv",
    }
