"""Where downloaded data is kept."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir() -> Path:
    """Return the cache folder, which need not exist yet.

    ``RAG_SOURCEBIAS_CACHE`` if set, else ``rag-sourcebias`` below ``XDG_CACHE_HOME``, else
    ``~/.cache/rag-sourcebias``.
    """
    own = os.environ.get("RAG_SOURCEBIAS_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "rag-sourcebias"
