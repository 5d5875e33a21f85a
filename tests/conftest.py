"""Which tests run first, and a terminal that is the same everywhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Files that take long. Tests are shared out by file: one that starts last leaves a worker idle.
_FIRST = ("data_checks", "e2e", "statistics")
_HERE = Path(__file__).parent
# rich reads these once, when the command line is imported: a width set here would stay.
for _name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
    os.environ.pop(_name, None)
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long folders in front; within them, and after them, the order stays as it is."""
    items.sort(key=lambda item: item.path.relative_to(_HERE).parts[0] not in _FIRST)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop what a file's Chroma clients started: each keeps a dozen descriptors for ever."""
    clients = sys.modules.get("chromadb.api.shared_system_client")
    if clients is None or (nextitem is not None and nextitem.path == item.path):
        return
    systems = clients.SharedSystemClient._identifier_to_system
    for name in [n for n in systems if os.sep in n]:  # folders
        systems.pop(name).stop()
