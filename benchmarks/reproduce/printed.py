"""Cells of Tables 4 to 6 of [K] as they are printed (dai2024_cells.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parent / "dai2024_cells.json"
NAMES = ("dataset", "generator", "measure", "model")


@cache
def printed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))["cells"]
    return found


def rows(where: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cells that hold these values, such as ``table: 4, measure: NDCG@1``."""
    found = [row for row in printed() if all(row[key] == value for key, value in where.items())]
    if not found:
        raise SystemExit(f"no printed cell has {dict(where)}")
    return found


def cells(where: Mapping[str, Any], value: str) -> dict[str, Any]:
    """``human``, ``llm`` or ``delta`` of these cells, named by what differs between them."""
    found = rows(where)
    names = [key for key in NAMES if len({row[key] for row in found}) > 1]
    x = [", ".join(row[key] for key in names) for row in found]
    return {"x": x, "y": [float(row[value]) for row in found]}
