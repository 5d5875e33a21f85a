"""docs/neighbours.md says what its results say, and nothing else."""

import json
import re
from pathlib import Path

from benchmark_modules import load

ROOT = Path(__file__).parents[2]
written, features = load("neighbours", "neighbours_page", "neighbours_features")
page, COLUMNS, FEATURES = written.page, features.COLUMNS, features.FEATURES

FOUND = json.loads((ROOT / "benchmarks" / "results" / "neighbours.json").read_text("utf-8"))
PAGE = (ROOT / "docs" / "neighbours.md").read_text(encoding="utf-8")


def test_the_page_is_made_of_the_results() -> None:
    assert page(FOUND) == PAGE, "run python benchmarks/neighbours/run.py --page"


def test_a_changed_result_changes_the_page() -> None:
    changed = json.loads(json.dumps(FOUND))
    changed["rankings"]["prepared"][0]["ms"]["pytrec_eval"] += 1000
    changed["ppi"]["coverage"][0]["coverage"] = 0.123
    text = page(changed)
    assert text != PAGE
    assert "12.3; " in text


def test_both_sides_gave_the_same_values() -> None:
    assert max(row["difference"] for row in FOUND["rankings"]["prepared"]) < 1e-12
    assert FOUND["ppi"]["difference"] < 1e-9
    assert FOUND["ragas"]["difference"] < 1e-5  # vectors are float32


def test_every_feature_has_a_mark_for_everyone() -> None:
    assert all(re.fullmatch("[Yp·]( [Yp·])*", marks) for _, marks in FEATURES)
    assert {len(marks.split()) for _, marks in FEATURES} == {len(COLUMNS)}
    lacking = [what for what, marks in FEATURES if marks.startswith("·")]
    assert len(lacking) >= 4, "the page must also say what others have and we lack"
