"""Published unfairness scores per query style ([W] Table 1)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rag_sourcebias.style.measure import max_unfairness

GOLDEN = json.loads((Path(__file__).parent / "cao2025.json").read_text(encoding="utf-8"))
ROWS = GOLDEN["rows"]
CELLS = np.array([row["cells"] for row in ROWS])


def test_no_published_score_is_above_the_maximum_of_ten_styles():
    # The sample form (ddof=1) would allow more: no cell contradicts either.
    assert CELLS.max() < max_unfairness(GOLDEN["n_document_styles"])
    assert CELLS.min() > 0
