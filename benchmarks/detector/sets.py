"""Labelled documents of the real sets, with what each is about."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
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
PARAPHRASED = ("dipper_chatgpt", "dipper_text_davinci_003", "dipper_flan_t5_xxl")


@dataclass(frozen=True)
class Labelled:
    """Documents as (id, text, label), and the group of each."""

    documents: list[tuple[str, str, str]]
    groups: list[str]

    def where(self, keep: Callable[[str], bool]) -> Labelled:
        rows = [i for i, group in enumerate(self.groups) if keep(group)]
        return Labelled([self.documents[i] for i in rows], [self.groups[i] for i in rows])

    def halves(self) -> tuple[Labelled, Labelled]:
        """Split by group; a hash decides, so that the same group falls alike in every run."""
        return (
            self.where(lambda group: zlib.crc32(group.encode()) % 2 == 0),
            self.where(lambda group: zlib.crc32(group.encode()) % 2 == 1),
        )

    def any_llm(self) -> Labelled:
        documents = [(d, t, ANY if s.startswith("llm:") else s) for d, t, s in self.documents]
        return Labelled(documents, self.groups)

    def __add__(self, other: Labelled) -> Labelled:
        return Labelled(self.documents + other.documents, self.groups + other.groups)


def outfox(root: Path, sources: dict[str, str] | None = None) -> Labelled:
    """Essays on 1,000 prompts by people and three models; groups are the prompts."""
    documents, groups = [], []
    for name in ("test", "valid"):
        for row in _lines(root / "outfox" / f"{name}.jsonl.gz"):
            for key, source in (sources or OUTFOX).items():
                if key in row:
                    documents.append((f"{row['id']}/{key}", row[key], source))
                    groups.append(f"outfox {row['query']}")
    return Labelled(documents, groups)


def paraphrased(root: Path) -> Labelled:
    """Return the models' essays after a paraphrasing model, to escape detection."""
    return outfox(root, dict.fromkeys(PARAPHRASED, ANY))


def crowdrag(root: Path) -> Labelled:
    """Answers to 301 queries, without citation marks; groups are the queries."""
    documents, groups = [], []
    for row in _lines(root / "crowdrag25" / "responses.jsonl.gz"):
        source = "human" if row["kind"] == "human" else "llm:crowdrag25"
        documents.append((row["response"], CITATION.sub("", row["text"]), source))
        groups.append(f"crowdrag {row['topic']}")
    return Labelled(documents, groups)


def rewrites(root: Path) -> Labelled:
    """Passages and their rewrites by Llama-2; groups are the pairs."""
    corpus = read_corpus(root / "nq-utd", titles=False).corpus
    tags = [corpus.tags.get(doc_id) for doc_id in corpus.doc_ids]
    return Labelled(
        [(d, text, tag.source or "") for (d, text), tag in zip(corpus, tags, strict=True)],
        [f"nq-utd {tag.pair_id}" for tag in tags],
    )


def styles(root: Path) -> Labelled:
    """56 passages and their rewrites in nine styles; groups are the passages."""
    documents, groups = [], []
    for line in (root / "nq-utd-styles" / "styles.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        for style, text in {"original": row["human"], **row["doc_styles"]}.items():
            name = style if style == "original" else f"style {style}"
            documents.append((f"{row['query_id']}/{row['doc_id']}/{style}", text, name))
            groups.append(f"styles {row['doc_id']}")
    return Labelled(documents, groups)


def _lines(path: Path) -> Iterator[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)
