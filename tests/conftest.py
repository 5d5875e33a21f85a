"""Which tests run first."""

from __future__ import annotations

from pathlib import Path

import pytest

# Files that take long. Tests are shared out by file: one that starts last leaves a worker idle.
_FIRST = ("data_checks", "e2e", "statistics")
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long folders in front; within them, and after them, the order stays as it is."""
    items.sort(key=lambda item: item.path.relative_to(_HERE).parts[0] not in _FIRST)
