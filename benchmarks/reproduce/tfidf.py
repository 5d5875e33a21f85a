"""TF-IDF as a retriever: scikit-learn's vectors, cosine similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.core.data import Corpus, Query, Run


@dataclass(frozen=True)
class TfidfSpec:
    """Recipe of a retriever over TF-IDF vectors."""

    name: str = "TF-IDF"

    @property
    def settings(self) -> Mapping[str, str]:
        import sklearn

        return {"vectors": f"scikit-learn {sklearn.__version__}, English stop words, cosine"}

    def build(self, corpus: Corpus) -> TfidfRetriever:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(stop_words="english")
        documents = vectorizer.fit_transform(list(corpus.texts))
        return TfidfRetriever(self.name, vectorizer, documents, tuple(corpus.doc_ids))


@dataclass(frozen=True)
class TfidfRetriever:
    """Documents as rows of length 1."""

    name: str
    vectorizer: Any
    documents: Any
    doc_ids: tuple[str, ...]

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        scores = self.vectorizer.transform([query.text for query in queries]) @ self.documents.T
        found = {}
        for query, row in zip(queries, scores.toarray(), strict=True):
            best = np.argsort(-row, kind="stable")[:depth]
            found[query.query_id] = {self.doc_ids[i]: float(row[i]) for i in best if row[i] > 0}
        return Run.from_dict(found, name=self.name)
