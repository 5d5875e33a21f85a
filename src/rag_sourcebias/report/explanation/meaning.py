"""What the numbers of an explanation mean, and the standing texts of its sections."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import base_of
from rag_sourcebias.report.format import count, level
from rag_sourcebias.types.explain_report import ExplainReport

__all__ = ["how_to_read", "section_texts"]


def section_texts(report: ExplainReport) -> dict[str, tuple[str, str]]:
    """Return (title, text) of every section."""
    c, base = report.config, base_of(report)
    return {
        "texts": (
            "The texts",
            "Length and wording of both versions of a document. Jaccard is the share of all "
            f"distinct words of a pair that both versions hold; overlap the share of the {base} "
            "version's words that the other keeps. Dashed lines are means.",
        ),
        "words": (
            "Words of queries, and words that mark a source",
            "What a lexical retriever such as BM25 sees. A word that rewriting drops stands in "
            "only one of the two versions, so that its idf is higher in the mixed corpus than in "
            "the corpus of the source that keeps it, and every document that has it gains: an "
            "artefact of mixing, not of relevance.",
        ),
        "vectors": (
            "The vectors",
            "Singular values of the matrix of all vectors of a source, largest first, compared "
            "index by index (Dai et al. 2024, Fig. 6); where vectors lie and whether that shows "
            "who wrote a text; and how near the two versions of a document are. Ends of the "
            "band may leave the picture.",
        ),
        "perplexity": (
            "Perplexity",
            "Mean −log probability of a text's tokens, in nats, under language models: of the "
            "next token (causal) or of a masked one (pseudo-perplexity; Dai et al. 2024, Fig. 7). "
            "Rewrites often have less. Whether an encoder prefers them for that reason is "
            "disputed, and cannot be read off here. Values beyond the picture are in its outermost "
            "bins.",
        ),
        "gap": (
            "What goes with the score gap",
            "The encoder's score of the other version minus that of the original, for queries to "
            "which both are relevant, as a sum: one part for each measured difference between "
            "versions, and a remainder. Parts are associations. Differences go together, so that "
            "a part may belong to another one, or to something that was not measured. Lines are "
            f"{level(c.confidence_level)} intervals, clustered by query.",
        ),
    }


def how_to_read(report: ExplainReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    c, base = report.config, base_of(report)
    return (
        (
            "Does this page say why an encoder prefers a source?",
            "No. It says how the sources differ for this encoder, and which differences go with "
            "its scores. A difference may be there without any effect, and an effect may come "
            "from what was not measured. To learn about causes, change one thing and measure "
            "again: rescore, project a direction out, or train.",
        ),
        (
            "Is perplexity the reason?",
            "It was proposed as one. Later work points at how retrievers are supervised: their "
            "training texts differ from rewrites in ways that perplexity only goes along with. "
            "Here it is one difference among several.",
        ),
        (
            "What does “established” mean?",
            f"The {level(c.confidence_level)} interval leaves out no difference. Each interval "
            "stands by itself: of twenty differences that are not there, about one would look "
            "established. “Not established” is not “no difference”: there may be too few pairs.",
        ),
        (
            "What is the spectrum?",
            "Singular values measure how much of the vectors lies along each of their main "
            "directions. Larger first values and smaller last ones mean vectors that are "
            "concentrated in fewer directions. The shaded band holds all differences at once "
            "with the stated confidence. Without centring, the first value holds the mean "
            "vector. Curves depend on the number of documents, so compare only equal numbers.",
        ),
        (
            "What is the probe?",
            "A linear rule fitted to tell the sources apart, tried on documents of pairs it has "
            "not seen. 50% is chance. Common share is how much of the squared distance between "
            "versions is one shift that all pairs have: near 0 there is none, at times the "
            "estimate is below 0. Anisotropy is the mean cosine of different documents.",
        ),
        (
            "What are the parts of the score gap?",
            "A regression of the gap on how versions differ, evaluated at no difference: part = "
            "slope × (mean difference). Where no pair comes near no difference, that is "
            "extrapolation and marked so. Shares are given only if the gap is well apart from 0. "
            "Share of variance is averaged over the orders in which differences may enter.",
        ),
        (
            f"Which of the {base} texts were looked at?",
            "Those with a version of the source"
            + ("" if c.limit is None else f", at most {count(c.limit)} drawn at random")
            + f" (seed {c.seed})"
            + (
                ""
                if c.perplexity_limit is None
                else f"; perplexities of at most {count(c.perplexity_limit)} of these"
            )
            + ". Both spectra with their bands and the coordinates of the map are in the JSON.",
        ),
    )
