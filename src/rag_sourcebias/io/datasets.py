"""Data sets by name: two bundled samples and the public sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.bundled import SAMPLE_LICENSE, load_sample
from rag_sourcebias.io.public_sets import PUBLIC_SETS, load_public_set

if TYPE_CHECKING:
    from rag_sourcebias.io.downloads import Progress
    from rag_sourcebias.io.files import PathLike
    from rag_sourcebias.types import Dataset

__all__ = ["DatasetInfo", "list_datasets", "load_dataset"]


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What :func:`load_dataset` knows about a name.

    Parameters
    ----------
    n_documents : int
        Of all sources together.
    how : str
        Where it comes from, in words.
    """

    name: str
    description: str
    n_documents: int
    n_queries: int
    license: str
    how: str


_SAMPLES = (
    DatasetInfo(
        name="crowdrag-rewrites",
        description="160 passages by people and their rewrites by an LLM (Claude)",
        n_documents=320,
        n_queries=160,
        license=SAMPLE_LICENSE,
        how="bundled",
    ),
    DatasetInfo(
        name="crowdrag25",
        description="301 queries, each answered by people and by an LLM (GPT-4o) in three styles",
        n_documents=1_806,
        n_queries=301,
        license=SAMPLE_LICENSE,
        how="bundled",
    ),
)


def list_datasets() -> tuple[DatasetInfo, ...]:
    """Return every known data set, bundled samples first."""
    return _SAMPLES + tuple(
        DatasetInfo(
            name=entry.name,
            description="Cocktail benchmark: human documents and their Llama-2 rewrites",
            n_documents=entry.n_documents,
            n_queries=entry.n_queries,
            license=entry.license,
            how=entry.how,
        )
        for entry in PUBLIC_SETS.values()
    )


def load_dataset(
    name: str,
    *,
    split: str = "test",
    cache: PathLike | None = None,
    base_url: str | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Load a data set by its name, downloading a public one on first use.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    split : str
        Of a public set; a bundled sample has one split only.
    cache : path or None
        Folder for downloads; None takes :func:`cache_dir`.
    base_url : str or None
        A mirror of the folder that holds ``<name>.zip``; its checksum is verified all the same.
    progress : callable or None
        Called as ``progress(received_bytes, total_bytes)`` during a download.

    Raises
    ------
    DataError
        If the name is unknown, or the set cannot or may not be downloaded.
    """
    if name in PUBLIC_SETS:
        return load_public_set(
            PUBLIC_SETS[name], split=split, cache=cache, base_url=base_url, progress=progress
        )
    if name not in (info.name for info in _SAMPLES):
        names = ", ".join(info.name for info in list_datasets())
        raise DataError(f"no data set {name!r}; there are {names}")
    return load_sample(name)
