"""What the tag commands read: the store, the taggers, the name of the backup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rag_sourcebias.cli.checks import require_writable_file
from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging import IdTagger, ProvenanceTagger, RuleTagger, Tagger, read_rules
from rag_sourcebias.tagging.document_store import DocumentStore
from rag_sourcebias.tagging.fingerprint import taggers_fingerprint
from rag_sourcebias.tagging.sidecar import SidecarStore
from rag_sourcebias.tagging.stores import open_document_store

__all__ = ["backup_file", "open_store", "read_taggers"]

_AUTO = "auto"


def open_store(spec: str, *, collection: str | None, sidecar: Path | None) -> DocumentStore:
    """Open a store that holds documents, with a file beside it where one is named."""
    require_writable_file("sidecar", sidecar)
    store = open_document_store(spec, collection=collection)
    if len(store) == 0:
        raise DataError(f"{store.name} holds no documents; there is nothing to tag")
    return store if sidecar is None else SidecarStore(store, sidecar)


def read_taggers(
    *, provenance: bool, rules: Path | None, id_pattern: str | None, detectors: Sequence[Path]
) -> list[Tagger]:
    """Taggers in order of trust: what a document declares comes before what is guessed of it."""
    taggers: list[Tagger] = []
    if provenance:
        taggers.append(ProvenanceTagger())
    if rules is not None:
        taggers.append(RuleTagger(read_rules(rules)))
    if id_pattern is not None:
        taggers.append(IdTagger() if id_pattern == _AUTO else IdTagger(id_pattern))
    if detectors:
        from rag_sourcebias.tagging.detector import DetectorTagger, load_detector

        taggers += [DetectorTagger(load_detector(folder)) for folder in detectors]
    if not taggers:
        raise DataError(
            "nothing to tag with: give at least one of --rules FILE, --provenance, "
            "--id-pattern REGEX and --detector FOLDER"
        )
    return taggers


def backup_file(
    backup: Path | None,
    spec: str,
    *,
    collection: str | None,
    taggers: Sequence[Tagger],
) -> Path:
    """Return the file for the tags that are replaced, the same one each time a command is run.

    By default it is beside a store on disk, and in the working folder for one on a server.
    """
    if backup is None:
        place = spec.partition(":")[2]
        server = place.startswith(("http://", "https://"))
        path = Path(re.sub(r"\W+", "-", place.partition("://")[2]).strip("-") if server else place)
        parts = (path.name, *([collection] if collection else []))
        name = ".".join((*parts, f"before-{taggers_fingerprint(taggers)[:8]}", "jsonl"))
        backup = path.parent / name
    require_writable_file("backup", backup)
    if backup.suffix != ".jsonl":
        raise DataError(f"--backup {backup}: tags are kept as JSON lines; name a .jsonl file")
    return backup
