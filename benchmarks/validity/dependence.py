"""What ``measure_source_bias`` says where queries share topics, or documents, of uneven sizes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from counting import study
from source import cells, counts, rows
from worlds import UNEVEN

RESULT = Path(__file__).parents[1] / "results" / "validity_dependence.json"

if __name__ == "__main__":
    study(counts, cells(UNEVEN), partial(rows, worlds=UNEVEN), RESULT)
