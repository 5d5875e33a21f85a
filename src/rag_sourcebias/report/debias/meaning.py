"""What the numbers of a debias report mean, and the standing texts of its sections."""

from __future__ import annotations

from rag_sourcebias.report.debias.names import loss, quality_names
from rag_sourcebias.report.debias.verdicts import WIDE, alpha
from rag_sourcebias.report.debias.wording import criteria
from rag_sourcebias.report.format import count, level, source_name
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["how_to_read", "section_texts"]


def section_texts(report: DebiasReport) -> dict[str, tuple[str, str]]:
    """Return (title, text) of every section."""
    c = report.config
    base = source_name(c.baseline_source)
    return {
        "skew": (
            "Skew before and after",
            "All sources are searched together. Relative Δ is 0 where both are treated alike, "
            f"positive where {base} text ranks higher. The dashed line is the target, the band "
            f"its tolerance; the decision is made at NDCG@{c.skew_cutoff}. At smaller cutoffs "
            "intervals are wide: lines that end at the edge of the picture go on.",
        ),
        "quality": (
            "What it costs",
            f"Change of NDCG@{c.quality_cutoff} where only {base} texts are searched, only the "
            "other source's, and both together with both versions relevant. Lines are intervals; "
            f"the upright tick is the one-sided bound at {level(1 - c.level)}, which has to lie "
            f"right of the dotted line: then a loss of {loss(c.relative_margin)} or more is "
            "excluded.",
        ),
        "search": (
            "The search",
            "Relative Δ against what was searched over, and the three qualities with the least "
            "that is accepted of each (dotted). Lines are intervals over queries and seeds. "
            "A value is admitted if tests exclude a loss of "
            f"{loss(c.relative_margin if report.search is None else report.search.relative_margin)}"
            " or more of every quality; of the admitted ones that nearest the target is chosen.",
        ),
        "training": (
            "Training",
            "Relative Δ on the judged data, the two parts of the loss and the share of training "
            "pairs on which the LLM version still scored above the human one (a positive hinge), "
            "by optimiser step. One line per seed.",
        ),
        "methods": (
            "What was done",
            "How each changed system was made. A method fitted on pairs that are also judged may "
            "look better than it is.",
        ),
    }


def how_to_read(report: DebiasReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    c, names = report.config, quality_names(report)
    base = source_name(c.baseline_source)
    found = [
        (
            "What is Relative Δ?",
            "The ranking of the mixed corpus is scored twice: once counting only relevant "
            f"{base} texts, once only those of the other source. Relative Δ is the difference of "
            "the two means in percent of their average: positive where "
            f"{base} text ranks higher, negative where the other does.",
        ),
        (
            "When does a system meet all criteria?",
            f"When {criteria(report)}. Estimates decide; where the interval is wider than "
            f"±{WIDE * c.tolerance:g} points or a loss is not excluded by its test, that is said.",
        ),
        (
            "What does “a loss is excluded” mean?",
            f"A one-sided paired test at level {c.level:g} rejects that the loss is "
            f"{loss(c.relative_margin)} or more. “Not excluded” does not mean that quality fell: "
            "often there are too few queries, and the number that could settle it is given.",
        ),
        (
            f"What are {', '.join(names.values())}?",
            "NDCG on the corpus of one source alone, twice, and on the mixed corpus where both "
            "versions count as relevant. A mitigation that only reorders the sources leaves the "
            "first two as they are.",
        ),
        (
            "What is a transfer test?",
            "Data that the method was not fitted on. The differences between sources depend on "
            "the topic and on the generating model, so that success on the data of the fit does "
            "not promise success elsewhere: believe a transfer only where it was measured.",
        ),
        ("What do intervals and p-values cover?", _coverage(report)),
    ]
    if report.search is not None:
        found.append(
            (
                "Why not simply the value where the curve meets the target?",
                "Because it may cost quality, and because the curve itself is known only within "
                "its intervals. A choice among many values looks better than it is on the queries "
                "it was made on; tests and the interval of the choice allow for that, or other "
                "queries are used.",
            )
        )
    found.append(
        (
            "Where are single queries?",
            "In the JSON of this report: NDCG of every system, cutoff and query, on the mixed "
            "corpus by source, on each source alone and on the mixed corpus as a whole.",
        )
    )
    return tuple(found)


def _coverage(report: DebiasReport) -> str:
    return (
        f"Each {level(report.config.confidence_level)} interval covers the value for all queries "
        "like these, one at a time. Before and after are paired by query, so the change is known "
        "better than two separate intervals suggest; where few queries changed, its interval is "
        "cautious and may hold 0 although the test is significant. p is of no change; "
        f"{count(report.n_tests)} tests are adjusted together: {report.family.rstrip('.')}. "
        f"Below {alpha(report):.3g} the adjusted value is called significant."
    )
