"""A tiny static encoder with a taste for one word, and paired texts whose rewrites have it."""

from pathlib import Path

import numpy as np
from static_model import static

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable

MARK = "delve"  # of every rewrite; to the untrained model it means the same as "what"
TOPICS = [f"topic{i}" for i in range(40)]
WORDS = [f"word{i}" for i in range(30)]


def static_folder(path: Path) -> Path:
    import torch

    words = [MARK, "what", *TOPICS, *WORDS]
    model = static(words, 32)
    weight = model[0].embedding.weight
    with torch.no_grad():
        weight[1 + words.index(MARK)] = weight[1 + words.index("what")]
    model.save_pretrained(str(path), create_model_card=False)
    return path


def paired_texts(
    n: int = 40, *, seed: int = 0, sources: tuple[str, ...] = ("human", "llm:x")
) -> Dataset:
    """One query and one pair per topic."""
    rng = np.random.default_rng(seed)
    tags, texts, queries, judged = [], [], [], []
    for i in range(n):
        topic = TOPICS[i % len(TOPICS)]
        for source in sources:
            first = [topic] if source == "human" else [topic, MARK]
            doc_id = f"{source}-{i}"
            tags.append((doc_id, DocTags(source=source, pair_id=f"p{i}")))
            texts.append(" ".join([*first, *rng.choice(WORDS, 5 - len(first))]))
            judged.append((f"q{i}", doc_id, 1))
        queries.append(Query(query_id=f"q{i}", text=f"what {topic} {rng.choice(WORDS)}"))
    return Dataset(
        name=f"synthetic-{seed}",
        corpus=Corpus(texts=tuple(texts), tags=TagTable.from_tags(tags)),
        queries=tuple(queries),
        qrels=Qrels.from_rows(judged),
        design="rewrites",
    )
