"""Labelled documents of the real sets, with what each is about."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.intake.beir import read_corpus

ANY = "llm:any"
CITATION = re.compile(r"\s?\[\d+(?:\s*[,–-]\s*\d+)*\]")
OUTFOX = {
    "human": "human",
    "chatgpt": "llm:chatgpt",
    "text_davinci_003": "llm:text-davinci-003",
    "flan_t5_xxl": "llm:flan-t5-xxl",
}


@dataclass(frozen=True)
class Labelled:
    """Documents as (id, text, label), and the group of each."""

    documents: list[tuple[str, str, str]]
    groups: list[str]

    def take(self, rows: list[int]) -> Labelled:
        return Labelled([self.documents[i] for i in rows], [self.groups[i] for i in rows])

    def any_llm(self) -> Labelled:
        documents = [(d, t, ANY if s.startswith("llm:") else s) for d, t, s in self.documents]
        return Labelled(documents, self.groups)


def outfox(root: Path) -> Labelled:
    """Essays on 1,000 prompts by people and three models; groups are the prompts."""
    documents, groups = [], []
    for name in ("test", "valid"):
        for row in _lines(root / "outfox" / f"{name}.jsonl.gz"):
            for key, source in OUTFOX.items():
                if key in row:
                    documents.append((f"{row['id']}/{key}", row[key], source))
                    groups.append(f"outfox {row['query']}")
    return Labelled(documents, groups)


def crowdrag(root: Path) -> Labelled:
    """Answers to 301 queries, without citation marks; groups are the queries."""
    documents, groups = [], []
    for row in _lines(root / "crowdrag25" / "responses.jsonl.gz"):
        source = "human" if row["kind"] == "human" else "llm:crowdrag25"
        documents.append((row["response"], CITATION.sub("", row["text"]), source))
        groups.append(f"crowdrag {row['topic']}")
    return Labelled(documents, groups)


def rewrites(root: Path, name: str) -> Labelled:
    """Passages and their rewrites by Llama-2; groups are the pairs."""
    corpus = read_corpus(root / name, titles=False).corpus
    tags = [corpus.tags.get(doc_id) for doc_id in corpus.doc_ids]
    return Labelled(
        [(d, text, tag.source or "") for (d, text), tag in zip(corpus, tags, strict=True)],
        [f"{name} {tag.pair_id}" for tag in tags],
    )


def _lines(path: Path) -> Iterator[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)
