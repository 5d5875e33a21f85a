"""A BERT encoder rebuilt from the ONNX file that it was exported to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from rag_sourcebias.neural.loading import quiet

PREFIX = "model.0.auto_model."
CONFIG = {
    "architectures": ["BertModel"],
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 384,
    "initializer_range": 0.02,
    "intermediate_size": 1536,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 3,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]
POOLING = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}
LENGTH = {"max_seq_length": 128, "do_lower_case": False}  # as published with the model
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
TEXTS = [
    "Which writing style does a retriever prefer?",
    "The first Nobel Prize in Physics was awarded in 1901 to Wilhelm Conrad Röntgen.",
    "omg that passage was sooo long 😅 " * 8,
    "x",
]
TOLERANCE = 1e-4


def weights(onnx_file: Path) -> dict[str, np.ndarray]:
    """Tensors by their names in transformers.

    The export kept the names of biases, norms and embeddings; a weight matrix became a transposed
    constant whose place follows from the node that multiplies by it.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(onnx_file).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found = {
        name.removeprefix(PREFIX): array
        for name, array in constants.items()
        if name.startswith(PREFIX)
    }
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            place = node.name.removeprefix("/model/").removesuffix("/MatMul").replace("/", ".")
            found[f"{place.removeprefix(PREFIX)}.weight"] = constants[node.input[1]].T
    return found


def build(onnx_file: Path, tokenizer: Path, target: Path) -> None:
    """Write a sentence-transformers folder; ``tokenizer`` is a folder with BERT's uncased one."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    tensors = {k: torch.tensor(np.ascontiguousarray(v)) for k, v in weights(onnx_file).items()}
    model = BertModel(BertConfig(**CONFIG), add_pooling_layer=False)
    model.load_state_dict(tensors)  # refuses missing and unknown names, and other shapes
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    (target / "1_Pooling").mkdir()
    for name, content in (
        ("config.json", CONFIG),
        ("modules.json", MODULES),
        ("sentence_bert_config.json", LENGTH),
        ("1_Pooling/config.json", POOLING),
    ):
        (target / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for name in TOKENIZER:
        shutil.copyfile(tokenizer / name, target / name)


def largest_difference(onnx_file: Path, folder: Path) -> float:
    """Between the token vectors of onnxruntime and of the rebuilt model, on some texts."""
    import onnxruntime
    import torch
    from transformers import AutoTokenizer, BertModel

    batch = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    with torch.no_grad(), quiet():
        model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
        ours = model(**batch).last_hidden_state.numpy()
    session = onnxruntime.InferenceSession(onnx_file, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {name: value.numpy() for name, value in batch.items()})
    theirs = next(array for array in outputs if array.shape == ours.shape)
    real = batch["attention_mask"].numpy().astype(bool)
    return float(np.abs(ours - theirs)[real].max())
