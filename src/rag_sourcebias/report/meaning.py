"""What the numbers mean, in words that suit the design of the data."""

from __future__ import annotations

from rag_sourcebias.report.format import CORRECTIONS, level, number, source_name
from rag_sourcebias.report.view import baseline_of, names_of, others_of
from rag_sourcebias.types.reports import SkewReport

__all__ = ["family_size", "family_text", "how_to_read"]


def family_size(report: SkewReport, variant: str = "mixed") -> int:
    """Return how many tests were corrected together: variants are corrected on their own."""
    if variant == "mixed":
        return report.n_tests
    cells = [c for s in report.systems if s.variant == variant for c in s.cells]
    return sum(c.p_adjusted is not None for c in cells)


def family_text(report: SkewReport, variant: str = "mixed") -> str:
    """Return the size of the family of tests, such as ``36 tests``."""
    n = family_size(report, variant)
    return "1 test" if n == 1 else f"{n:,} tests"


def how_to_read(report: SkewReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    config, names = report.config, names_of(report)
    base = names[baseline_of(report)]
    other = names[others_of(report)[0]] if len(others_of(report)) == 1 else "the other source's"
    confidence = level(config.confidence_level)
    first = min(config.cutoffs)
    margin = number(config.margin)
    return (
        (
            "What is Relative Δ?",
            "All sources are retrieved from one mixed corpus. The quality of the ranking is then "
            "scored twice: once counting only the relevant documents of one source, once only "
            "those of the other, each at the rank it really has. Relative Δ is the difference of "
            "the two mean scores in percent of their average. 0 means equal treatment, +200 means "
            f"that only {base} documents were found, −200 that none of them were. Where one source "
            "has more relevant documents than the other, chance alone does not make it 0: the "
            "centred figure subtracts what each source would score if the source labels were "
            "permuted among the relevant documents of a query. With one copy of each document the "
            "two are equal.",
        ),
        (
            "How is the verdict reached?",
            f"It rests on the interval of centred Relative Δ of {config.primary_measure}: inside "
            f"±{margin} points both sources are treated alike; beyond 0 one of them is favoured; "
            "otherwise these queries cannot tell. All other measures are exploratory.",
        ),
        (
            "Which sign means what?",
            f"Positive: {base} text is ranked higher. Negative: {other} text is ranked higher. "
            f"Sources here: {', '.join(source_name(s) for s in names)}.",
        ),
        (
            f"Why is @{first} so noisy?",
            f"At @{first} a query contributes one hit or none, so a handful of queries can move "
            "the value by tens of points. Read the interval, not the estimate, and look at the "
            "larger cutoffs: they use more of each ranking and are steadier.",
        ),
        (
            "What do the intervals cover?",
            f"With {confidence} confidence each interval covers the value for all queries like "
            "these, one interval at a time: they are not widened for the number of comparisons. "
            "“Needed” estimates how many queries give a verdict four times in five, if any skew in "
            "the interval is as likely as it says; without any skew more are needed.",
        ),
        ("What does the adjusted p-value cover?", _adjusted(report)),
        ("What follows from a skew here?", _design(report)),
    )


def _adjusted(report: SkewReport) -> str:
    start = (
        "p belongs to no skew beyond chance: one minus the largest confidence level whose "
        f"interval excludes 0. {family_text(report)} belong together: "
        f"{report.family.rstrip('.')}. "
    )
    threshold = f"{1 - report.config.confidence_level:.3g}"
    if report.config.correction == "none":
        return start + (
            "No correction for the number of tests was asked for, so some of them fall below "
            f"{threshold} by chance alone. The test says whether there is a difference, not how "
            "large it is."
        )
    what = (
        "the chance of even one false alarm among all of them"
        if report.config.correction == "holm"
        else "the expected share of false alarms among the significant ones"
    )
    return start + (
        f"The adjusted value ({CORRECTIONS[report.config.correction]}) controls {what}; only an "
        f"adjusted value below {threshold} is called significant. “Not significant” does not mean "
        "that there is no difference."
    )


def _design(report: SkewReport) -> str:
    if report.data.design == "rewrites":
        return (
            "Each text has a twin of another source that is meant to say the same thing, so a "
            "skew is a preference for the source or its way of writing, as far as the twins really "
            "agree: the sole-corpus control and the length-matched values check that. It holds "
            "for this corpus, these queries and these generating models, and the direction can "
            "differ elsewhere."
        )
    start = (
        "The texts of different sources answer the same queries independently, so they "
        "differ in content and quality as well as in source."
        if report.data.design == "independent"
        else "It is not known whether the texts of different sources say the same thing."
    )
    return start + (
        " A skew shows which source this retriever ranks higher here. It is not by itself evidence "
        "of a bias: better or longer answers of one source would look the same."
    )
