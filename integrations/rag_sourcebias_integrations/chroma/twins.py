"""Twin smoothing in a Chroma collection: groups in a file beside it, kept up to date."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast
from zlib import crc32

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.twins import (
    TwinGroups,
    TwinRescorer,
    group_documents,
    read_twins,
    write_twins,
)
from rag_sourcebias.measure.texts import paired_overlap
from rag_sourcebias_integrations.chroma.collections import pages
from rag_sourcebias_integrations.chroma.observe import best_score

_PAGE = 2_000
_NEAR = 50  # neighbours of a new document that are looked at


def fit_collection_twins(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    path: str | Path,
    *,
    threshold: float | None = None,
) -> TwinGroups:
    """Find the copies in a collection by its own vectors and texts, and keep them in a file.

    Raises
    ------
    DataError
        If there are fewer than two documents, or neighbours do not say the same.
    """
    ids: list[str] = []
    texts: list[str] = []
    vectors: list[Any] = []
    for page in pages(collection, _PAGE, include=["documents", "embeddings"]):
        ids += page["ids"]
        texts += [text or "" for text in page["documents"]]
        vectors.append(np.asarray(page["embeddings"], dtype=np.float32))
    groups = group_documents(
        ids,
        texts,
        np.concatenate(vectors) if vectors else np.empty((0, 1), np.float32),
        space="vectors of the collection",
        threshold=threshold,
        collection=str(collection.id),
    )
    write_twins(groups, path)
    return groups


class TwinCollection:
    """A collection whose copies share their place; all else is that of the collection.

    ``query`` asks once, for a quarter more documents, and returns as many as were asked for. The
    order of copies is drawn from the query's text: give ``queries``, the texts of the vectors,
    where other frameworks are to serve the same order; without them the vector stands for its text.
    ``add``, ``upsert``, ``update`` and ``delete`` keep the groups and their file up to date: a
    new document costs one search for its neighbours. ``isinstance(x, chromadb.Collection)`` is
    False.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client.
    path : str or Path
        What :func:`fit_collection_twins` wrote for this collection.
    seed : int
    show : {"all", "one"}
        As for :class:`~rag_sourcebias.debias.TwinRescorer`.

    Raises
    ------
    DataError
        If the file is of another collection.
    """

    def __init__(
        self,
        collection: Any,  # noqa: ANN401
        path: str | Path,
        *,
        seed: int = 0,
        show: Literal["all", "one"] = "all",
    ) -> None:
        self._collection = collection
        self._path = path
        self._top = best_score(collection)
        self.groups = read_twins(path, collection=str(collection.id))
        self._rescorer = TwinRescorer(self.groups, seed=seed, show=show)

    def query(
        self,
        query_embeddings: Any = None,  # noqa: ANN401
        query_texts: Any = None,  # noqa: ANN401
        n_results: int = 10,
        include: Sequence[str] = ("metadatas", "documents", "distances"),
        *,
        queries: str | Sequence[str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Return what the collection returns, with copies sharing their place.

        Parameters
        ----------
        queries : str or sequence of str, optional
            Texts of the vectors in ``query_embeddings``, one each; also needed for images.

        Raises
        ------
        DataError
            If there are not as many texts as queries.
        """
        told = query_texts if queries is None else queries
        texts = [told] if isinstance(told, str) else told
        if texts is None and query_embeddings is not None and len(query_embeddings):
            query_embeddings, texts = _named(query_embeddings)
        asked = [*include]
        added = "distances" not in include
        if added:
            asked.append("distances")
        found = self._collection.query(
            query_embeddings=query_embeddings,
            query_texts=query_texts,
            n_results=n_results + -(-n_results // 4),
            include=asked,
            **options,
        )
        if texts is None or len(texts) != len(found["ids"]):
            raise DataError(
                f"{len(texts or ())} texts for {len(found['ids'])} queries; need as many"
            )
        fields = [found[name] for name in ("ids", *asked) if found[name]]
        for row, ids in enumerate(found["ids"]):
            copies = self.groups.present(ids)
            if not copies:  # in their order there is nothing to pick
                for field in fields:
                    field[row] = field[row][:n_results]
                continue
            scores = [self._top - distance for distance in found["distances"][row]]
            new = self._rescorer.shared(texts[row], ids, scores, copies)
            order = sorted(range(len(ids)), key=new.__getitem__, reverse=True)[:n_results]
            for field in fields:
                field[row] = [field[row][place] for place in order]
        if added:
            found.update(distances=None, included=[*include])
        return found

    def add(self, ids: Any, **content: Any) -> None:  # noqa: ANN401
        """Add documents, and find what they are copies of."""
        self._collection.add(ids=ids, **content)
        self._changed(ids)

    def upsert(self, ids: Any, **content: Any) -> None:  # noqa: ANN401
        """Add or replace documents, and find what they are copies of."""
        self._collection.upsert(ids=ids, **content)
        self._changed(ids)

    def update(self, ids: Any, **content: Any) -> None:  # noqa: ANN401
        """Change documents; groups are looked at anew where text or vector changed."""
        self._collection.update(ids=ids, **content)
        if content.get("embeddings") is not None or content.get("documents") is not None:
            self._changed(ids)

    def delete(self, ids: Any = None, **options: Any) -> Any:  # noqa: ANN401
        """Delete documents, also from their groups."""
        gone = self._collection.get(ids=ids, include=[], **options)["ids"]
        result = self._collection.delete(ids=ids, **options)
        self.groups.remove(gone)
        write_twins(self.groups, self._path)
        return result

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name == "_collection":  # not there yet: while being copied
            raise AttributeError(name)
        return getattr(self._collection, name)

    def _changed(self, ids: Any) -> None:  # noqa: ANN401
        """Find what documents are alike to, by one search of the collection for each."""
        names = [ids] if isinstance(ids, str) else list(ids)
        page = self._collection.get(ids=names, include=["embeddings", "documents"])
        alike: list[tuple[str, str, float]] = []
        if page["ids"]:
            near = self._collection.query(
                query_embeddings=page["embeddings"],
                n_results=min(_NEAR, self._collection.count()),
                include=["embeddings", "documents"],
            )
            for row, doc_id in enumerate(page["ids"]):
                alike += self._alike(doc_id, row, page, near)
        known = self.groups
        present = [*page["ids"]]
        known.add(present, [pair for pair in alike if pair[1] in known or pair[1] in present])
        write_twins(known, self._path)

    def _alike(
        self, doc_id: str, row: int, page: Mapping[str, Any], near: Mapping[str, Any]
    ) -> list[tuple[str, str, float]]:
        settings = self.groups.settings
        others = cast("list[str]", near["ids"][row])
        vectors = _unit(near["embeddings"][row])
        cosine = vectors @ _unit([page["embeddings"][row]])[0]
        enough = cosine >= settings.threshold
        if self.groups.weights is not None and enough.any():
            texts = [page["documents"][row] or "", *(text or "" for text in near["documents"][row])]
            words = self.groups.weights.vectors(texts)
            place = np.arange(1, len(texts))
            enough &= paired_overlap(words, np.zeros_like(place), place) >= settings.overlap
        return [
            (doc_id, others[place], float(cosine[place]))
            for place in np.flatnonzero(enough).tolist()
            if others[place] != doc_id
        ]


def _named(embeddings: Any) -> tuple[Any, list[str]]:  # noqa: ANN401
    """Return vectors as the arrays that Chroma makes of them, and a name for each."""
    several = isinstance(embeddings[0], list | tuple | np.ndarray)
    vectors = [np.array(v, dtype=np.float32) for v in (embeddings if several else (embeddings,))]
    return vectors, [str(crc32(v.tobytes())) for v in vectors]


def _unit(vectors: Any) -> Any:  # noqa: ANN401
    array = np.asarray(vectors, dtype=np.float32)
    return array / np.maximum(np.linalg.norm(array, axis=1, keepdims=True), 1e-12)
