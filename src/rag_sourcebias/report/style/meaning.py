"""What the numbers of a style report mean, and the standing texts of its sections."""

from __future__ import annotations

from rag_sourcebias.report.format import level, number
from rag_sourcebias.report.meaning import CORRECTIONS
from rag_sourcebias.report.style.names import original_text, style_name
from rag_sourcebias.report.style.view import alpha, original_of
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["how_to_read", "section_texts", "star_note"]


def star_note(report: StyleReport, *, intervals: bool = True) -> str:
    """Return the key of tables of ranks, which show intervals or do not."""
    name = level(report.config.confidence_level)
    start = f"Average ranks{f' with {name} intervals' if intervals else ''}"
    if original_of(report) is None:
        return f"{start}; 1 is most similar to the query."
    threshold = number(alpha(report), digits=2)
    correction = report.config.correction
    rule = (
        f"p below {threshold}, not corrected"
        if correction == "none"
        else f"adjusted p below {threshold} ({CORRECTIONS[correction]} over the document styles of "
        "one query style)"
    )
    return (
        f"{start}; 1 is most similar to the query. * differs from {original_text(report)}: {rule}."
    )


def section_texts(report: StyleReport) -> dict[str, str]:
    """Return the introduction of each section by name."""
    base, queries = original_text(report), style_name(report.config.original_query)
    name = level(report.config.confidence_level)
    compared = (
        f" The dashed line is {base}; blue circles rank above it, orange triangles below, hollow "
        "ones not significantly so."
        if original_of(report) is not None
        else ""
    )
    return {
        "ranks": (
            "The versions of one document are ranked by their similarity to the query, nothing "
            f"else competes. Lines are {name} intervals under {queries} queries.{compared}"
        ),
        "side": (
            f"Distance from {base} in places, paired by query: left of the dashed line a style "
            "ranks above it. Hollow marks are not significant."
        ),
        "matrix": (
            "Average rank of each document style (columns) when the query is written in each "
            "style (rows). Blue cells rank above the middle, orange below. Bold numbers differ "
            f"significantly from {base} in the same row; frames mark a query and a document in "
            "the same style."
        ),
        "unfairness": (
            "Unfairness is (largest − smallest) × standard deviation of the average ranks: 0 when "
            "all styles rank alike. It cannot be negative, so chance alone gives a positive "
            "score: the short upright lines show how much. A low mean over query styles is a fair "
            "system, a low standard deviation (sd) a robust one."
        ),
        "matching": (
            "Does a query in one style raise documents in that style? Places gained under the "
            "matching query style against the mean of all others; positive is a gain. These "
            "intervals are not adjusted for the number of styles."
        ),
        "length": (
            "Styles may differ in length. Ranks at equal length take out what the number of words "
            "explains, as far as it varies from query to query within a style: if a style moves "
            "towards the middle, part of its bias was about length."
        ),
        "quality": (
            "What it costs the reader to ask in another style: retrieval from an index of the "
            f"original documents, scores ×100, changes against {queries} queries paired by query. "
            "* and filled marks are significant after correction over query styles and measures."
        ),
        "index": (
            "All styles of all documents in one index. The score counts the version in one style "
            "alone. Relative Δ is the difference of two scores in percent of their average; "
            f"positive: {base} ranks higher. Filled marks have an interval that excludes 0; these "
            "are not adjusted for the number of styles."
        ),
        "texts": (
            "What distinguishes the styles before any system sees them. A style that differs in "
            "length or shares fewer words with the original may rank differently for that alone."
        ),
        "pairs": (
            "Every pair of document styles is compared on the same queries by a sign-flip test, "
            "and all pairs of a system are adjusted together."
        ),
    }


def how_to_read(report: StyleReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    config, k = report.config, len(report.data.doc_styles)
    base, confidence = original_text(report), level(config.confidence_level)
    limit = number(config.margin * (k - 1), digits=2)
    return (
        (
            "What is an average rank?",
            f"Every document exists in {k} styles that should say the same thing. For each query "
            f"the {k} versions are ranked by similarity, 1 to {k}, ties sharing the "
            f"{'mean' if config.ties == 'average' else config.ties} of their ranks. A system that "
            f"does not care about style gives every style {number((k + 1) / 2)} on average.",
        ),
        (
            "When is a style called higher or lower?",
            f"When Friedman's test says that styles differ, it ranks above or below {base} with an "
            f"adjusted p-value below {number(alpha(report), digits=2)}, and not all styles are "
            f"certain to lie within {limit} places of each other: these are called alike.",
        ),
        (
            "How large is an unfairness score?",
            "It depends on the number of styles and, through chance, on the number of queries. "
            "Compare it with the score by chance beside it and with other systems on the same "
            "data. Minus chance is right on average where there is no preference; where styles "
            "really differ it is too low, by at most the score by chance.",
        ),
        (
            "What do Kendall's W and Friedman's p say?",
            "W is how far queries agree on one order of the styles: 0 not at all, 1 completely. "
            "p is the chance of as much agreement without any preference. A small p with a small "
            "W is a weak tendency that many queries share.",
        ),
        (
            "What do the intervals cover?",
            f"With {confidence} confidence each covers the value for all queries like these, one "
            "at a time: they are not widened for the number of comparisons, and systems are not "
            "corrected together.",
        ),
        (
            "What follows from a bias here?",
            "Texts or questions in a silenced style are found less easily by this system, as far "
            "as the versions really say the same thing: a rewrite that loses facts deserves a "
            "lower rank. It holds for these texts and the model that wrote the styles. Choosing "
            "another encoder is the plainest remedy; tell users which one is in use.",
        ),
    )
