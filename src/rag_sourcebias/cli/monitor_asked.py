"""What ``monitor probe`` asks: a part of the application, or a retriever that is built here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rag_sourcebias.adapters import as_search, document_id
from rag_sourcebias.cli.console import stages
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir
from rag_sourcebias.monitor.canary.asking import Ask, ask_retriever
from rag_sourcebias.types import Dataset

__all__ = ["what_is_asked"]

_DEPTH = 100


def what_is_asked(
    ask: str | None,
    retriever: str | None,
    dataset: Dataset,
    *,
    id_key: str | None,
    cache: Path | None,
) -> tuple[Ask, Callable[[Any], str] | None]:
    """Return what is asked, and how the id is read off what comes back."""
    if (ask is None) == (retriever is None):
        raise DataError("say what is asked: --ask module:name, or --retriever bm25")
    if ask is not None:
        return _of_application(ask), partial(document_id, key=id_key)
    with stages() as progress:
        progress.begin("indexing")
        builder = SpecBuilder(cache or cache_dir(), progress.advance)
        built = builder.retriever(str(retriever)).build(dataset.corpus)
    return ask_retriever(built, depth=_DEPTH), None


def _of_application(name: str) -> Ask:
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise DataError(f"--ask {name!r}: write module:name, such as my_app.search:retriever")
    sys.path.insert(0, str(Path.cwd()))  # as python -m does
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise DataError(f"--ask {name!r}: there is no module {error.name!r} here") from error
    except AttributeError as error:
        raise DataError(f"--ask {name!r}: {error}") from error
    try:
        return as_search(found)
    except DataError as error:
        raise DataError(f"--ask {name!r}: {error}") from None
