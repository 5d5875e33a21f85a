"""Tags from document ids such as ``d17#llm:gpt-4o``."""

from __future__ import annotations

from collections.abc import Mapping

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.conditions import regular_expression
from rag_sourcebias.tagging.fingerprint import digest
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.source_names import check_source

__all__ = ["ID_PATTERN", "IdTagger"]

#: ``<id>#<source>`` or ``<id>@<source>``; the id before the mark is the pair id.
ID_PATTERN = r"^(?P<pair_id>.+)[#@](?P<source>human|llm:.+)$"
_GROUPS = ("pair_id", "source", "model", "style")


class IdTagger:
    """Read pair, source and style from document ids.

    Parameters
    ----------
    pattern : str
        Regex searched in the id, with at least one of the named groups ``pair_id``, ``source``,
        ``model`` (the source is then ``llm:<model>``) and ``style``. The default reads
        ``<pair_id>#<source>`` and ``<pair_id>@<source>``, where the source is ``human`` or
        ``llm:<model>``.
    sources : mapping of str to str, optional
        What the texts of the group ``source`` mean, such as ``{"orig": "human"}``. A text that is
        not in it has to be a source name itself.

    Raises
    ------
    DataError
        For a bad regex, one without these groups, one with both ``source`` and ``model``, or a
        bad name in ``sources``; when tagging, for an id whose source text is no source name.

    Examples
    --------
    >>> tags = IdTagger()("d17#llm:gpt-4o", "", {})
    >>> tags.pair_id, tags.source
    ('d17', 'llm:gpt-4o')
    """

    def __init__(
        self, pattern: str = ID_PATTERN, *, sources: Mapping[str, str] | None = None
    ) -> None:
        self._pattern = regular_expression(pattern, named=f"id pattern {pattern!r:.200}")
        named = set(self._pattern.groupindex)
        if not named or not named <= set(_GROUPS) or {"source", "model"} <= named:
            raise DataError(
                f"id pattern {pattern!r} has the named groups {sorted(named)}; expected some of "
                f"{list(_GROUPS)}, and not both source and model"
            )
        self.sources = {text: check_source(name) for text, name in (sources or {}).items()}

    @property
    def fingerprint(self) -> str:
        """Identity of the pattern and of what the source texts mean."""
        return "ids:" + digest(self._pattern.pattern, self.sources)

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document, with origin "declared"; None when the pattern does not fit."""
        found = self._pattern.search(doc_id)
        if found is None:
            return None
        groups = found.groupdict()
        source = groups.get("source") or None
        if source is not None and (source := self.sources.get(source, source)):
            try:
                check_source(source)
            except DataError as error:
                known = f"; the texts given a meaning are {sorted(self.sources)}"
                raise DataError(f"document id {doc_id!r}: {error}{known}") from error
        if groups.get("model"):
            source = f"llm:{groups['model']}"
        pair_id, style = groups.get("pair_id") or None, groups.get("style") or None
        if source is None and pair_id is None and style is None:
            return None
        return DocTags(
            source=source,
            style=style,
            pair_id=pair_id,
            origin=None if source is None else "declared",
        )
