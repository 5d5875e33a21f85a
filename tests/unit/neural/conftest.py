"""Tiny random models, saved as the real ones are."""

from pathlib import Path

import pytest

WORDS = [
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
    *("lambda", "mu", "passage", ":", "please", "write", "a", "question", "based", "on", "this"),
    *(".", "?"),
]


def _tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    vocabulary = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer, vocabulary, TemplateProcessing, PreTrainedTokenizerFast


def _bert_tokenizer():
    tokenizer, vocabulary, template, fast = _tokenizer()
    tokenizer.post_processor = template(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return fast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    )


def _bert_config(labels: int = 1):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(WORDS) + 4,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=0.5,
    )


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory) -> Path:
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertModel

    torch.manual_seed(1)
    raw = tmp_path_factory.mktemp("bert")
    BertModel(_bert_config()).save_pretrained(raw)
    _bert_tokenizer().save_pretrained(raw)
    folder = tmp_path_factory.mktemp("encoders") / "tiny-encoder"
    SentenceTransformer(str(raw)).save(str(folder))
    return folder


@pytest.fixture(scope="session")
def cross_encoder_folder(tmp_path_factory) -> Path:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(2)
    folder = tmp_path_factory.mktemp("crossencoders") / "tiny-cross"
    BertForSequenceClassification(_bert_config()).save_pretrained(folder)
    _bert_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def causal_folder(tmp_path_factory) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    tokenizer, vocabulary, _, fast = _tokenizer()
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.5,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
    )
    folder = tmp_path_factory.mktemp("causal") / "tiny-llama"
    LlamaForCausalLM(config).save_pretrained(folder)
    fast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    return folder
