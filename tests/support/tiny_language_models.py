"""Language models of two layers with random weights, over the words of ``debias_folder``."""

from __future__ import annotations

from pathlib import Path

from debias_folder import ASKING, MARK, WORDS
from static_model import tokenizer_of


def _tokenizer(*special: str):
    names = ["[PAD]", "[UNK]", *special, MARK, ASKING, *WORDS]
    return tokenizer_of(names), len(names)


def write_causal(folder: Path) -> Path:
    """Write a causal language model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(3)
    tokenizer, size = _tokenizer()
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.5,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    return folder


def write_masked(folder: Path) -> Path:
    """Write a masked language model."""
    import torch
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    torch.manual_seed(4)
    tokenizer, size = _tokenizer("[CLS]", "[SEP]", "[MASK]")
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = BertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    ).save_pretrained(folder)
    return folder
