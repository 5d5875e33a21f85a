"""A tiny static model of sentence-transformers, as the real ones are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def tokenizer_of(names: Sequence[str]) -> Any:
    """Return a tokenizer of words, the unknown one "[UNK]"."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    vocabulary = {name: row for row, name in enumerate(names)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer


def static(words: Sequence[str], dimension: int = 16, *, vectors: Any = None) -> Any:
    """Return a model that averages a vector per word, drawn if not given; row 0 is of others."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    torch.manual_seed(0)
    sizes = {"embedding_dim": dimension} if vectors is None else {"embedding_weights": vectors}
    module = StaticEmbedding(tokenizer_of(["[UNK]", *words]), **sizes)
    return SentenceTransformer(modules=[module], device="cpu")


def static_model(folder: Path, words: Sequence[str], dimension: int = 16) -> Path:
    """Write such a model."""
    static(words, dimension).save_pretrained(str(folder))
    return folder
