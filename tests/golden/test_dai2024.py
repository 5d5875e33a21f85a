"""Published Relative Δ follow from the published per-source scores ([K] Tables 4–6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_sourcebias.measure.relevance import relative_delta

GOLDEN = json.loads((Path(__file__).parent / "dai2024.json").read_text(encoding="utf-8"))
COMPLETE = [c for c in GOLDEN["cells"] if c["human"] is not None and c["llm"] is not None]


def name(cell):
    return (
        f"T{cell['table']} {cell['dataset']} {cell['generator']} {cell['model']} {cell['measure']}"
    )


@pytest.mark.parametrize("cell", COMPLETE, ids=name)
def test_printed_delta_follows_from_printed_scores(cell):
    delta = relative_delta(cell["human"], cell["llm"])
    assert delta == pytest.approx(cell["delta"], abs=GOLDEN["tolerance"])
