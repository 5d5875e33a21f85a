"""Modules of ``benchmarks/debias``, which is no package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "benchmarks" / "debias"


def load(name: str) -> ModuleType:
    """Import one module, and leave no trace where other benchmarks have one of its name."""
    sys.path.insert(0, str(FOLDER))
    known = set(sys.modules)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
        for module in [m for m in sys.modules if m not in known and (FOLDER / f"{m}.py").exists()]:
            del sys.modules[module]
