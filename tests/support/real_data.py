"""The folder of real data sets, which few machines hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder() -> Path:
    root = os.environ.get("RAG_SOURCEBIAS_DATA")
    if not root:
        pytest.skip("RAG_SOURCEBIAS_DATA does not name the folder of real data sets")
    return Path(root)
