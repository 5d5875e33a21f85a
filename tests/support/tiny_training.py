"""A tiny static encoder with a taste for one word, and paired texts whose rewrites have it."""

from pathlib import Path

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable

MARK = "delve"  # of every rewrite; to the untrained model it means the same as "what"
TOPICS = [f"topic{i}" for i in range(40)]
WORDS = [f"word{i}" for i in range(30)]


def static_model(seed: int = 0, dimension: int = 32):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    torch.manual_seed(seed)
    vocabulary = {w: i for i, w in enumerate(["[UNK]", MARK, "what", *TOPICS, *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    module = StaticEmbedding(tokenizer, embedding_dim=dimension)
    weight = module.embedding.weight
    with torch.no_grad():
        weight[vocabulary[MARK]] = weight[vocabulary["what"]]
    return SentenceTransformer(modules=[module], device="cpu")


def static_folder(path: Path) -> Path:
    static_model().save_pretrained(str(path), create_model_card=False)
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
