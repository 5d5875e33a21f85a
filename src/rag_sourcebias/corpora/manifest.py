"""``manifest.json``: how a folder of rewrites was made, written before and after the work."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from rag_sourcebias._version import __version__
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import source_of_stem
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import PathLike, read_json, write_atomic
from rag_sourcebias.types.names import require_name
from rag_sourcebias.types.rewrites import (
    PAIRED_VERSION,
    HumanTexts,
    PairedManifest,
    RewriteSource,
)
from rag_sourcebias.types.serial import from_versioned, to_plain

__all__ = ["MANIFEST", "merged", "read_manifest", "source_tag", "stem_of", "write_manifest"]

MANIFEST = "manifest.json"


def read_manifest(folder: PathLike) -> PairedManifest:
    """Read the manifest of a folder of rewrites.

    Raises
    ------
    DataError
        If there is none, or it is not one.
    UnsupportedVersionError
        If another release wrote it in a form this one does not know.
    """
    file = Path(folder) / MANIFEST
    data = read_json(file, "the manifest of a folder of rewrites")
    if not isinstance(data, dict):
        raise DataError(f"{file} holds {type(data).__name__}; expected an object")
    with sound(file, "a complete manifest", names_file=False):
        return from_versioned(PairedManifest, data, version=PAIRED_VERSION, what="manifest")


def write_manifest(folder: Path, manifest: PairedManifest) -> None:
    """Write the manifest, all of it or nothing."""
    text = json.dumps(to_plain(manifest), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomic(folder / MANIFEST, text + "\n")


def merged(
    folder: Path, human: HumanTexts, wanted: tuple[RewriteSource, ...]
) -> tuple[PairedManifest, tuple[RewriteSource, ...]]:
    """Join what is wanted with what a folder already holds.

    Returns
    -------
    manifest : PairedManifest
        Sources of other models or prompts as they were, then those wanted.
    wanted : tuple of RewriteSource
        As the folder has them where they are finished, else with the day on which they were begun.

    Raises
    ------
    DataError
        If the folder was made from other documents, or has the same source made otherwise.
    """
    known: dict[str, RewriteSource] = {}
    if (folder / MANIFEST).exists():
        before = read_manifest(folder)
        if (before.human.digest, before.human.limit) != (human.digest, human.limit):
            raise DataError(
                f"{folder} was made from other documents ({before.human.n_documents} of "
                f"{before.human.name!r}, limit {before.human.limit}; now {human.n_documents} of "
                f"{human.name!r}, limit {human.limit}); choose another folder"
            )
        human = before.human
        known = {source.source: source for source in before.sources}
    begun: list[RewriteSource] = []
    for new in wanted:
        old = known.get(new.source)
        if old is not None and old.request != new.request:
            raise DataError(
                f"{folder} holds {new.source!r} made with {_differences(old, new)}; choose another "
                "folder, or name the prompt or the model differently"
            )
        if old is None:
            begun.append(new)
        else:
            begun.append(old if old.finished else replace(new, date=old.date))
    sources = {**known, **{source.source: source for source in begun}}
    manifest = PairedManifest(
        human=human, sources=tuple(sources.values()), library_version=__version__
    )
    return manifest, tuple(begun)


def _differences(old: RewriteSource, new: RewriteSource) -> str:
    names = ("fingerprint", "template", "style", "temperature", "seed", "max_tokens")
    told = [
        f"{name} {getattr(old, name)!r} (now {getattr(new, name)!r})"
        for name in names
        if getattr(old, name) != getattr(new, name)
    ]
    return ", ".join(told)


def source_tag(model: str, prompt: str) -> str:
    """Return the source of rewrites: the prompt of [K] needs no name.

    Examples
    --------
    >>> source_tag("gpt-4o", "rewrite"), source_tag("gpt-4o", "style-3")
    ('llm:gpt-4o', 'llm:gpt-4o+style-3')
    """
    if not model.strip() or model != model.strip():
        raise DataError(f"model name {model!r} cannot be a source; give a name with model=")
    require_name(model, "model name")
    return f"llm:{model}" if prompt == "rewrite" else f"llm:{model}+{prompt}"


def stem_of(source: str) -> str:
    """Return the name, without ``.jsonl``, of the file that holds a source.

    Examples
    --------
    >>> stem_of("llm:meta/llama+style-3"), stem_of("llm:human")
    ('meta%2Fllama+style-3', 'llm%3Ahuman')
    """
    for name in (source.removeprefix("llm:"), source):
        stem = quote(name, safe="+ ,=@()[]")
        stem = f"%2E{stem[1:]}" if stem.startswith(".") else stem
        if source_of_stem(stem) == source:
            return stem
    raise DataError(f"source {source!r} cannot be the name of a corpus file")
