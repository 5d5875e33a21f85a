"""What was not computed, and why."""

from __future__ import annotations

from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

__all__ = ["PARTS", "is_missing", "reason"]

PARTS = {
    "lexical": "words of queries",
    "cosine": "cosine of versions",
    "spectrum": "singular values",
    "geometry": "geometry of the vectors",
    "map": "map",
    "perplexity": "perplexity",
    "decomposition": "parts of the score gap",
}

# What a note must mention to be the reason for a part.
_WORDS = {
    "lexical": ("lexical", "idf", "query words"),
    "cosine": ("cosine",),
    "spectrum": ("spectrum",),
    "geometry": ("geometry",),
    "map": ("map:",),
    "perplexity": ("perplexit", "causal:", "masked:"),
    "decomposition": ("decompos", "score gap"),
}
_QUERIES = ("judged quer", "no quer", "judgment", "relevant")
_OF_QUERIES = ("lexical", "decomposition")
_OF_VECTORS = ("cosine", "spectrum", "geometry", "map", "decomposition")


def is_missing(explained: SourceExplanation, part: str) -> bool:
    """Whether a part of the explanation is not there."""
    found = getattr(explained, part)
    return found is None or found == ()


def reason(report: ExplainReport, explained: SourceExplanation, part: str) -> str:
    """Return why a part is missing, without a full stop: a note of the report says it, or we do."""
    words = _WORDS[part]
    told = [note for note in explained.notes if any(w in note.casefold() for w in words)]
    if told:
        return "; ".join(note.rstrip(".") for note in told)
    if part in _OF_VECTORS and not report.encoder:
        return "no encoder was given"
    if part == "perplexity":
        return "no language model was given"
    if part in _OF_QUERIES:
        told = [note for note in explained.notes if any(w in note.casefold() for w in _QUERIES)]
        if told:
            return "; ".join(note.rstrip(".") for note in told)
        if not report.data.n_queries or part == "lexical":
            return "there are no judged queries with text"
    return "the report does not say why"
