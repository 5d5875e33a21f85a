"""Small models and answers to try things on, and what says that they failed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rag_sourcebias.core.texts import AnswerTexts

TEXTS = ("a river floods", "rain fell on the town", "the town by the river", "dogs run")
FILLER = ("", "it is", "well it must be said that this is")


def check(met: object, what: str) -> None:
    """Raise where something is not as it should be."""
    if not met:
        raise RuntimeError(what)


class HashedWords:
    """An encoder that counts words in hashed bins."""

    name = fingerprint = "hashed-words"
    settings: Mapping[str, str] = {"model": "hashed-words"}

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[zlib.crc32(word.encode()) % 64] += 1
        return rows

    encode_documents = encode_queries


def judged_answers(n: int = 30) -> AnswerTexts:
    """Answers of three systems in more and more words; those to every fifth question are wrong."""
    rows = [(i, s) for i in range(n) for s in range(len(FILLER))]
    return AnswerTexts(
        question_ids=tuple(f"q{i}" for i, _ in rows),
        systems=tuple(f"system {s}" for _, s in rows),
        answers=tuple(f"{FILLER[s]} {'river' if i % 5 else 'stone'}{i}".strip() for i, s in rows),
        references=tuple((f"river{i}",) for i, _ in rows),
        correct=np.array([float(i % 5 > 0) for i, _ in rows]),
    )


def static_model(folder: Path) -> Path:
    """Write a sentence-transformers model that averages a random vector per word."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = dict.fromkeys(word for text in TEXTS for word in text.split())
    tokens = {word: i for i, word in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(tokens, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    module = StaticEmbedding(tokenizer, embedding_dim=16)
    SentenceTransformer(modules=[module], device="cpu").save_pretrained(str(folder))
    return folder
