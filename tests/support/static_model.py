"""A tiny static model of sentence-transformers, saved as the real ones are."""

from pathlib import Path


def static_model(folder: Path, words: list[str], dimension: int = 16) -> Path:
    """Write a model that averages a random vector per word."""
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
    SentenceTransformer(modules=[module], device="cpu").save_pretrained(str(folder))
    return folder
