"""Published Relative Δ follow from the published per-source scores ([K] Tables 4–6)."""

from __future__ import annotations

import json
from collections import Counter
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


def test_the_file_says_how_much_of_the_paper_it_holds():
    assert GOLDEN["n_cells"] == len(COMPLETE)
    assert GOLDEN["n_cells_in_the_paper"] == 144
    assert bool(GOLDEN["missing"]) == (len(COMPLETE) < 144)


def test_every_cell_is_one_of_the_paper():
    keys = Counter(name(c) for c in GOLDEN["cells"])
    assert max(keys.values()) == 1
    sizes = {4: 72, 5: 36, 6: 36}
    for cell in GOLDEN["cells"]:
        assert cell["measure"] in {f"{m}@{k}" for m in ("NDCG", "MAP") for k in (1, 3, 5)}
        assert -200 <= cell["delta"] <= 200
    for table, count in Counter(c["table"] for c in GOLDEN["cells"]).items():
        assert count <= sizes[table]
