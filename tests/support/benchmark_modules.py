"""Modules of ``benchmarks``, which is no package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(folder: str, *names: str) -> list[ModuleType]:
    """Import modules of a folder, and leave no trace where other folders have some of that name."""
    where = BENCHMARKS / folder
    own = {path.stem for path in where.glob("*.py")}
    kept = {name: sys.modules.pop(name) for name in own & sys.modules.keys()}
    sys.path.insert(0, str(where))
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(where))
        for name in own & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(kept)
