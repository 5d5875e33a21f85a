"""Tags from provenance that a document declares in standard fields.

Read are IPTC ``digitalSourceType`` (NewsCodes URI, bare term, or the schema.org form), the
``AI-Disclosure`` field (draft-abaris-aicdh) and C2PA text manifests. Nothing is verified and
nothing is guessed: a declaration that names neither of the two origins gives no source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rag_sourcebias.tagging.declarations import Declaration, read_declarations
from rag_sourcebias.types.documents import DocTags

__all__ = ["UNNAMED_MODEL", "Declaration", "ProvenanceTagger"]

#: Source of a text declared as generated where no model is named.
UNNAMED_MODEL = "llm:unnamed"
_READS = "provenance:1"


class ProvenanceTagger:
    """Tag documents by what they declare about themselves.

    Fields are read from the metadata (any spelling of the two names, also under ``headers``,
    ``iptc``, ``xmp``, ``provenance``, ``meta``), from the head and the JSON-LD of a text that is an
    HTML page, and from C2PA text manifests. When declarations disagree the source stays unknown.
    The origin is "provenance" even where the source is unknown: the document said something.

    Attributes
    ----------
    seen : Counter
        Declarations by ``"field: what it says"``, and ``"conflict"`` per disagreeing document.

    Examples
    --------
    >>> tagger = ProvenanceTagger()
    >>> tagger("d1", "text", {"AI-Disclosure": 'mode=ai-originated, model="gpt-4o"'}).source
    'llm:gpt-4o'
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    @property
    def fingerprint(self) -> str:
        """Identity of what is read as a declaration; a release that reads more changes it."""
        return _READS

    def read(self, text: str, metadata: Mapping[str, object]) -> tuple[Declaration, ...]:
        """Every declaration of one document, metadata first."""
        return tuple(read_declarations(text, metadata))

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document; None when it declares nothing."""
        found = self.read(text, metadata)
        if not found:
            return None
        self.seen.update(f"{d.field}: {d.says}" for d in found)
        said = {d.says for d in found} - {"nothing"}
        models = {d.model for d in found if d.says == "llm" and d.model}
        if len(said) > 1 or len(models) > 1:
            self.seen["conflict"] += 1
            return DocTags(origin="provenance")
        if said == {"human"}:
            return DocTags(source="human", origin="provenance")
        if said == {"llm"}:
            source = f"llm:{models.pop()}" if models else UNNAMED_MODEL
            return DocTags(source=source, origin="provenance")
        return DocTags(origin="provenance")
