"""What the numbers of a judged report mean, and standing texts of its sections."""

from __future__ import annotations

from rag_sourcebias.report.format import count, level, number
from rag_sourcebias.report.judged.numbers import unit_of
from rag_sourcebias.report.judged.queries import queries_summary
from rag_sourcebias.report.judged.view import other_scale
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JudgedReport

__all__ = ["bias_note", "comparisons_note", "curves_note", "how_to_read", "queries_note"]

_TARGETS = {
    "population": "the mean over all {units} like these, of which these are a random sample",
    "pool": "the mean people would give exactly these {units}, labelled and not",
    "unlabeled": "the mean people would give the unlabelled {units} of this set",
}


def how_to_read(report: JudgedReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    units = unit_of(report)
    what = _TARGETS.get(report.config.target, report.config.target).format(units=units)
    found = [
        (
            "What does an interval promise?",
            f"In {level(report.config.confidence_level)} of evaluations like this one the interval "
            f"holds {what}, as people would judge it. It counts the chance in which {units} were "
            "labelled; it cannot count people who disagree with each other, or labels that were "
            "not drawn at random.",
        ),
        (
            "How can a judge narrow it?",
            "The judge has seen everything, people only a part. Where the two agree in what they "
            f"find better and worse, the judge's values tell how the labelled {units} differ from "
            "the rest. How far it rates too high or too low does not matter: the human labels "
            "correct that. Only the correlation r counts, and it must exceed 1/√(n − 2).",
        ),
        (
            "What does “saved” mean?",
            "How many more labels the labels alone would need for an interval as narrow. It is "
            "estimated from the same labels and as uncertain as they are few. Savings of 0–10% are "
            "common. A negative number means that the judge made this interval wider; that can "
            "happen by chance with a judge that helps on average. Do not pick whichever interval "
            "came out narrower: that spoils the promise of both.",
        ),
        (
            "Why not trust the judge alone?",
            "Its mean has no error bar that counts its own mistakes. More judged "
            f"{units} make it more precise and no more right.",
        ),
    ]
    if any(c.kind == "relative_delta" for c in report.comparisons):
        found.append(
            (
                "What is Relative Δ?",
                "The difference of two mean scores in percent of their average, from −200 to "
                "+200. Positive: the first, the baseline, is higher. Each source is corrected by "
                "its own human labels, since judges treat sources differently.",
            )
        )
    if report.per_query:
        found.append(
            (
                "What does the interval of one query promise?",
                "That of all queries, the stated share has its human value inside. It is no "
                "promise for a particular kind of query, and it is wide, because a judge that is "
                "right on average is often wrong about one query.",
            )
        )
    return tuple(found)


def comparisons_note(report: JudgedReport) -> str:
    """Return the key to the comparisons."""
    n = len(report.comparisons)
    text = (
        "Positive: the first is higher. Each side is corrected by its own human labels: one "
        "correction for both would hide whom the judge favours."
    )
    if n > 1:
        text += (
            f" The {count(n)} intervals are not widened for their number: the more are looked at, "
            "the more exclude 0 by chance."
        )
    return text


def curves_note(report: JudgedReport) -> str:
    """Return what the curves show and what they cannot."""
    runs, aim = report.config.coverage_runs, level(report.config.confidence_level)
    return (
        f"What would fewer or more labels have done? The labelled values stand in for the whole "
        f"population: {count(runs)} evaluations of each size are drawn from them, and each method "
        f"gives its interval. Coverage is the share that holds the true mean; it should be {aim}, "
        f"and the shaded band is what {count(runs)} runs leave to chance. A method below the band "
        "promises too much. Width is only worth comparing "
        "among methods that cover. The dotted line marks the labels there are: near it, the "
        "same few labels are drawn again and again, so read the right end with care. Labels that "
        "were not drawn at random would not show here."
    )


def queries_note(report: JudgedReport) -> str:
    """Return how to see the pictures of single queries."""
    s = [queries_summary(q) for q in report.per_query]
    text = (
        "One bar per query, sorted by value. Dots are the corrected predictions of the judge, "
        "dashes the values from human labels."
    )
    if any(x.n_labeled for x in s):
        text += (
            " The labelled queries also set how wide the intervals are, so the share of them that "
            "is covered holds by construction: it shows where the judge fails, and is no test."
        )
    if s:
        low, high = min(x.share for x in s), max(x.share for x in s)
        share = (
            f"{number(100 * low, digits=0)}%"
            if round(100 * low) == round(100 * high)
            else f"{number(100 * low, digits=0)}–{number(100 * high, digits=0)}%"
        )
        text += f" On average a bar spans {share} of the range of the measure."
    return text


def bias_note(report: JudgedReport, name: str, audit: JudgeAudit) -> str:
    """Return what the bias of a judge means for who uses it."""
    if any(other_scale(report, m) for m in report.means if m.measure == name):
        return (
            "The judge seems to answer on another scale than people, so judge − people is no error "
            "of the judge. How far the two go together is what counts."
        )
    text = (
        "The mean of judge − people: above 0 the judge is too kind, below 0 too hard. The human "
        "labels correct the estimates on this page for it."
    )
    if audit.groups:
        text += (
            " A bias that is alike in all groups does a comparison no harm; one that differs "
            "turns a comparison by the judge alone."
        )
    return text
