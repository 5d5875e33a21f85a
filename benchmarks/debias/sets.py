"""The data sets of the study, each as a retrieval task."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample

OUTFOX = {
    "human": "human",
    "chatgpt": "llm:chatgpt",
    "text_davinci_003": "llm:text-davinci-003",
    "flan_t5_xxl": "llm:flan-t5-xxl",
}
FIT = "nfcorpus"


def training_set(root: Path) -> Dataset:
    """What everything is fitted on: the training split of nfcorpus."""
    return read_beir(root / FIT, split="train")


def outfox(root: Path) -> Dataset:
    """1,000 essay prompts, each answered by a person and by three models: find the essays.

    Many prompts ask nearly the same, so that essays on another prompt may serve as well; they
    count as not relevant for every source alike.
    """
    rows = []
    for name in ("test", "valid"):
        with gzip.open(root / "outfox" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    texts, tags, judged = [], [], []
    for row in rows:
        for key, source in OUTFOX.items():
            doc_id = f"{row['id']}/{key}"
            texts.append(row[key])
            tags.append((doc_id, DocTags(source=source, pair_id=row["id"], origin="declared")))
            judged.append((row["id"], doc_id, 1))
    return Dataset(
        name="outfox",
        corpus=Corpus(texts=tuple(texts), tags=TagTable.from_tags(tags)),
        queries=tuple(Query(query_id=row["id"], text=row["query"]) for row in rows),
        qrels=Qrels.from_rows(judged),
        design="independent",
        license="Apache-2.0",
        attribution="OUTFOX (Koike et al., AAAI 2024)",
    )


JUDGED: dict[str, Callable[[Path], Dataset]] = {
    "nfcorpus dev": lambda root: read_beir(root / FIT, split="dev"),
    "nq-utd": lambda root: read_beir(root / "nq-utd"),
    "outfox": outfox,
    "crowdrag25": lambda _: load_sample("crowdrag25"),
}
"""By name; the first is of the kind that was fitted on, the others say what transfers."""
