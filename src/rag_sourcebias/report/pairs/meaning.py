"""What the numbers of a pair report mean, and the standing texts of its sections."""

from __future__ import annotations

from rag_sourcebias.report.format import level, source_name
from rag_sourcebias.report.pairs.names import points
from rag_sourcebias.types.pair_report import PairReport

__all__ = ["how_to_read", "section_texts"]


def section_texts(report: PairReport) -> dict[str, tuple[str, str]]:
    """Return (title, text) of every section."""
    c, base = report.config, source_name(report.baseline_source)
    like = f"cosine ({report.encoder})" if report.encoder else "words in common"
    return {
        "criteria": (
            "The three criteria",
            "What Dai et al. (KDD 2024, §2) ask of a corpus in which source bias can be measured: "
            "the source of every document is known, judgments hold for every version of a "
            "document, and every document has one counterpart that says the same. Whether it does "
            "say the same is what the checks of the pairs are about.",
        ),
        "flags": (
            "Flags",
            "Pairs by what was found. A broken pair is no rewrite of the whole text; numbers and "
            "names tell of facts that were lost or added in a rewrite. A pair can have several.",
        ),
        "values": (
            "How alike the pairs are",
            "Length ratio, Jaccard and overlap of distinct words (Fig. 3 of Dai et al.) and, with "
            "an encoder, the cosine of both vectors (their Fig. 5). Dotted: thresholds of this "
            f"report. Dashed: where mismatched pairs end ({like}). Values beyond the edge "
            "are in the outer bars.",
        ),
        "worst": (
            "The worst pairs",
            "Broken pairs first, then those that lost or gained most facts. Marked in the original "
            "is what the rewrite lacks, marked in the rewrite what the original does not say. "
            "Flags are found by rules, not by a reader: some marks are false alarms.",
        ),
        "sole": (
            "Each corpus searched alone",
            f"The same queries on the {base} documents alone and on their rewrites alone. If both "
            "are equally hard, a difference in the mixed corpus is not one of quality. A p-value "
            "that shows no difference does not show that there is none: “equivalent” means that a "
            f"difference of {points(c.margin)} or more is excluded at level {c.level:g}, after "
            f"correction. Differences carry {level(c.confidence_level)} intervals, ×100.",
        ),
    }


def how_to_read(report: PairReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    found = [
        (
            "What should I do with flagged pairs?",
            "Read the worst below, rewrite or leave out the broken ones, and look whether flags "
            "for numbers and names are real losses. All flagged pairs stand in report.json, and "
            "every value of every pair in the CSV file of its source beside this page.",
        ),
        (
            "How far can the flags be trusted?",
            "Planted faults on real rewrites were found in 88 to 100 of 100 cases, refusals by "
            "their wording in 70 (all of them by another flag). About one in four flags for "
            "numbers and names, read by eye, was none. Facts that were turned round (“rose” for "
            "“fell”) are not found.",
        ),
        (
            "Why does it matter?",
            "Source bias is a difference in rank between texts that say the same. Where a rewrite "
            "lost facts, is cut off or is a copy, a difference in rank has another reason, or "
            "cannot show.",
        ),
    ]
    if report.sole_corpus:
        found.append(
            (
                f"Why a margin of {points(report.config.margin)}?",
                "No test can show that two means are exactly equal, only that they differ by less "
                "than a margin. The default of 5 points is below the 7 to 12 points of NDCG@1 by "
                "which neural models favour rewrites on the mixed SciFact of Dai et al. (Table "
                "4), and some 200 queries can show it; half of it needs four times as many.",
            )
        )
    return tuple(found)
