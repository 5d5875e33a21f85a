"""Standing texts of the report's sections."""

from __future__ import annotations

from rag_sourcebias.report.format import CORRECTIONS, level
from rag_sourcebias.report.meaning import family_text
from rag_sourcebias.types.reports import SkewReport

__all__ = ["SECTIONS", "star_note"]

SECTIONS = {
    "sign": (
        "What turns the sign",
        "The primary measure under other usual settings of the retriever and with pairs cut to "
        "equal length, and the exposure of all documents, relevant or not. Where these point in "
        "different directions, the verdict holds for the setting as deployed only.",
    ),
    "twins": (
        "Twins",
        "Two versions of one relevant document, one per source: which ranks higher? A win rate "
        "of 0.50 is even-handed; below, the baseline's version tends to win, above, the other's. "
        "The equal-length rate is what a logistic regression expects for twins of the same "
        "length and average word overlap. Pairs of which neither version was found are left out.",
    ),
    "length-matched": (
        "Length-matched",
        "The audit repeated with both versions of each pair cut to the same length. If the skew "
        "shrinks, part of it was about length.",
    ),
    "exact": (
        "As deployed and with exact search",
        "The same encoder with exact search, because the approximate index returned something "
        "else. A gap between the columns is an effect of the index.",
    ),
    "sole-corpus": (
        "Sole-corpus control",
        "Each source searched alone. A large difference here means that the versions do not say "
        "the same thing, so the mixed result is not source bias alone. A small one does not "
        "prove that they do. These p-values are not adjusted.",
    ),
    "exposure": (
        "Exposure",
        "Which share of a reader's attention each source receives, judged or not, against its "
        "share of the corpus. AWRF is attention-weighted rank fairness: 1 means in proportion to "
        "the corpus. A source may earn more attention by being more relevant.",
    ),
}


def star_note(report: SkewReport) -> str:
    """Return the key below the table of all numbers."""
    threshold = f"{1 - report.config.confidence_level:.3g}"
    if report.config.correction == "none":
        rule = f"* p below {threshold}, not corrected for {family_text(report)}"
    else:
        rule = (
            f"* adjusted p below {threshold} ({CORRECTIONS[report.config.correction]} over "
            f"{family_text(report)})"
        )
        if any(s.variant != "mixed" for s in report.systems):
            rule += "; exact-search and length-matched repeats are corrected on their own"
    return (
        f"Scores ×100. {rule}. Intervals at {level(report.config.confidence_level)} are not "
        f"adjusted. {report.config.primary_measure} carries the verdict, other measures are "
        "exploratory. Centred Δ: beyond what permuted source labels give. Needed: queries with "
        "which a verdict is reached four times in five."
    )
