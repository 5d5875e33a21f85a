"""A tiny static model of sentence-transformers, as the real ones are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def static(words: Sequence[str], dimension: int = 16) -> Any:
    """Return a model that averages a random vector per word; row 0 is of all other words."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    vocabulary = {word: row for row, word in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    torch.manual_seed(0)
    module = StaticEmbedding(tokenizer, embedding_dim=dimension)
    return SentenceTransformer(modules=[module], device="cpu")


def static_model(folder: Path, words: Sequence[str], dimension: int = 16) -> Path:
    """Write such a model."""
    static(words, dimension).save_pretrained(str(folder))
    return folder
