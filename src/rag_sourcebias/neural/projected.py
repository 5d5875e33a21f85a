"""A projection as part of a sentence-transformers model folder."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import visible
from rag_sourcebias.debias.projection import SourceProjection, write_projection
from rag_sourcebias.io.files import read_json, sound
from rag_sourcebias.neural.loading import ENCODERS, SentenceEncoder, find_model, require_torch

PROJECTION_FILE = "source_projection.npz"
"""Where the written folder keeps the projection, for vectors that are already stored."""

_POOLED = ("StaticEmbedding",)  # modules that make one vector per text by themselves
_FOLLOWERS = ("Dense", "LayerNorm", "Dropout")
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

    With ``sides="documents"`` the module stands behind a ``Router`` (sentence-transformers ≥ 5)
    that lets ``encode_query`` pass. A caller that uses plain ``encode`` for both sides, as the
    wrappers of LangChain, LlamaIndex and Chroma do, gets projected queries too; LangChain's
    accepts ``query_encode_kwargs={"task": "query"}``, and
    :class:`~rag_sourcebias.debias.ProjectedEncoder` needs nothing.

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
        sentence-transformers does for one text vector, has no pooling module, or makes vectors of
        another dimension, or the projection was fitted on another model.
    MissingExtraError
        If sentence-transformers is not installed.
    """
    require_torch(f"model folder {str(target)!r}")
    packaged = ENCODERS.get(str(model))
    source = packaged.find() if packaged is not None else None
    source = source or find_model(model, packaged="all-MiniLM-L6-v2").path
    modules = _modules(source)
    original = SentenceEncoder(model, batch_size=len(_PROBES), device="cpu")
    _check_fitted(original, projection)
    vectors = original.encode_documents(_PROBES)
    if vectors.shape[1] != projection.dimension:
        raise DataError(
            f"{source} makes vectors of {vectors.shape[1]} dimensions, but the projection is for "
            f"{projection.dimension}; fit it on vectors of this model"
        )
    place = _free(Path(target).expanduser(), source)
    scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        copy = scratch / place.name
        shutil.copytree(source, copy)
        _insert(copy, modules, projection)
        write_projection(projection, copy / PROJECTION_FILE)
        _compare(copy, projection, vectors)
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
    if "Transformer" in kinds and "Pooling" not in kinds:
        raise DataError(
            f"{source} has no pooling module ({' → '.join(kinds)}): there is no vector per text to "
            "project"
        )
    start = 1 if kinds[:1] == [*_POOLED] else 2 if kinds[:2] == ["Transformer", "Pooling"] else 0
    end = len(kinds) - (kinds[-1:] == ["Normalize"])
    if not start or any(kind not in _FOLLOWERS for kind in kinds[start:end]):
        raise DataError(
            f"{source} has an unknown layout ({' → '.join(kinds) or 'no modules'}); known are "
            "Transformer → Pooling or StaticEmbedding, then any of "
            f"{', '.join(_FOLLOWERS)}, then Normalize or nothing, all of sentence-transformers"
        )
    if any(Path(path).is_absolute() or ".." in Path(path).parts for path in paths):
        raise DataError(f"{file} names a module outside the folder: {paths}")
    return modules


def _kind(name: str) -> str:
    """Name of a class of sentence-transformers, or the full name of any other."""
    return name.rpartition(".")[2] if name.startswith("sentence_transformers.") else name


def _check_fitted(original: SentenceEncoder, projection: SourceProjection) -> None:
    fitted = projection.encoder.split(":")
    if fitted[0] == "sentence-transformers" and fitted[1] not in original.fingerprint.split(":"):
        raise DataError(
            f"the projection was fitted on vectors of {projection.encoder!r}, but model "
            f"{original.name!r} is {original.fingerprint!r}; name the model it was fitted on"
        )


def _free(place: Path, source: Path) -> Path:
    if place.exists():
        raise DataError(f"{place} exists; name a folder that does not")
    if not place.parent.is_dir():
        raise DataError(f"{place} cannot be written: folder {place.parent} does not exist")
    if place.resolve().is_relative_to(source.resolve()):
        raise DataError(f"{place} lies inside the model {source}; name a folder outside of it")
    return place


def _insert(folder: Path, modules: list[dict[str, Any]], projection: SourceProjection) -> None:
    at = len(modules) - (_kind(modules[-1]["type"]) == "Normalize")
    both = projection.sides == "both"
    kind = "Dense" if both else "Router"
    name = f"{len(modules)}_Source{kind}"
    if both:
        _write_dense(folder / name, projection)
    else:
        _write_router(folder / name, projection)
    inserted = {"path": name, "type": _TYPES + kind}
    modules = [*modules[:at], inserted, *modules[at:]]
    rows = [{**row, "idx": index, "name": str(index)} for index, row in enumerate(modules)]
    _write_json(folder / "modules.json", rows)


def _write_dense(folder: Path, projection: SourceProjection) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    # Keys that newer releases add are left out: older ones would refuse them.
    config = {
        "in_features": projection.dimension,
        "out_features": projection.dimension,
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    _write_json(folder / "config.json", config)
    weight = np.ascontiguousarray(projection.matrix.T)  # torch computes x @ weight.T
    save_file({"linear.weight": weight}, folder / "model.safetensors", metadata={"format": "pt"})


def _write_router(folder: Path, projection: SourceProjection) -> None:
    _write_dense(folder / "document_0_Dense", projection)
    (folder / "query_0_Dropout").mkdir()
    # Every route needs a module: one that drops nothing passes queries on bit by bit.
    _write_json(folder / "query_0_Dropout" / "config.json", {"dropout": 0.0})
    config = {
        "types": {
            "query_0_Dropout": f"{_TYPES}Dropout",
            "document_0_Dense": f"{_TYPES}Dense",
        },
        "structure": {"query": ["query_0_Dropout"], "document": ["document_0_Dense"]},
        "parameters": {"default_route": "document", "allow_empty_key": True},
    }
    _write_json(folder / "router_config.json", config)


def _write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _compare(
    folder: Path, projection: SourceProjection, vectors: np.ndarray[Any, np.dtype[np.float32]]
) -> None:
    written = SentenceEncoder(folder, batch_size=len(_PROBES), device="cpu")
    found = written.encode_documents(_PROBES)
    gap = float(np.abs(found - projection.apply(vectors)).max())
    if not gap <= _TOLERANCE:
        raise DataError(
            f"the written model differs from the projection by {gap:.2g} (at most {_TOLERANCE:g} "
            "is accepted); its modules do not run as its modules.json says"
        )
