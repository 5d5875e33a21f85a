"""Reports of every kind as they were stored, of which the library computed every number."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from rag_sourcebias.kinds import read_report

STORED = Path(__file__).parents[1] / "golden" / "reports"
NAMES = tuple(sorted(file.name.removesuffix(".json.gz") for file in STORED.glob("*.json.gz")))


@functools.cache
def stored(name: str) -> Any:
    return read_report(STORED / f"{name}.json.gz")
