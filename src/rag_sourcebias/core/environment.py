"""What a report must state about the software and machine behind its numbers."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache

from rag_sourcebias._version import __version__

# Only what was imported can have influenced the numbers.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "bm25s": "bm25s",
    "Stemmer": "PyStemmer",
    "torch": "torch",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
    "chromadb": "chromadb",
    "langchain_core": "langchain-core",
    "llama_index.core": "llama-index-core",
    "sklearn": "scikit-learn",
    "openai": "openai",
    "pyarrow": "pyarrow",
}


@cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # reads e-mail too: 15 ms

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def environment() -> dict[str, str]:
    """Versions of the packages in use, and the machine."""
    found = {"rag-sourcebias": __version__, "python": platform.python_version()}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            found[package] = _version(package)
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found
