"""Prompts as the papers print them, beside those of the library."""

from __future__ import annotations

from rag_sourcebias.judged.judges import RELEVANCE_DOCUMENT, RELEVANCE_PASSAGE
from rag_sourcebias.pairs.rewrites import REPHRASE, REWRITE, STYLES

TABLE_7 = """\
Rewrite the text below in your own words:
Paraphrase the provided text while maintaining its meaning:
Summarize the following passage in a concise manner:
Simplify the given passage while keeping the main ideas:
Rephrase the given text using alternative expressions:
Condense the following passage to focus on key points:
Briefly restate the provided text without losing its essence:
Reword the passage below to make it more succinct:
Express the following text in a different way while keeping its intent:"""

STYLE_LINES = """\
Please rewrite the following text
Your writing style is formal, efficient, and concise, using professional language and focusing on \
facts, figures, and data.
Your writing style is clear and using simple language, often avoiding idioms or complex sentences.
Your writing style is informal, often includes emojis, abbreviations, and internet slang.
Your writing style is polite, respectful, and somewhat formal. You use more traditional language \
and avoid using slang or abbreviations.
Your writing style is formal, detailed, and precise manner with structured texts. You use \
technical language and focus on evidence-based arguments.
Your writing style is energetic, motivational, and positive manner.
Your writing style is friendly, casual, and empathetic manner with personal anecdotes
Your writing style is expressive and emotive (passionate, engaging, empathetic). You use \
metaphors, analogies, and storytelling to convey your points."""

LISTING_1 = """\
Assess the relevance of the passage to the query on a four-point scale:
[0] Irrelevant: The passage has nothing to do with the query.
[1] Related: The passage seems related to the query but does not answer it.
[2] Highly relevant: The passage has some answer for the query, but the answer may be a bit \
unclear, or hidden amongst extraneous information.
[3] Perfectly relevant: The passage is dedicated to the query and contains the exact answer.
Query: {query}
Passage: {passage}
Relevance:"""

LISTING_2 = """\
Assess the relevance of the document to the query on a three-point scale:
[0] Not relevant: The document is not relevant to the query.
[1] Relevant: Parts of the document may be relevant to the query.
[2] Highly Relevant: The document is highly relevant to the query.
Query: {query}
Document: {document}
Relevance:"""

Pairs = dict[str, tuple[object, object]]


def rephrase() -> Pairs:
    rewrite = "Please rewrite the following text: {text}"
    pairs: Pairs = {"rewrite": (REWRITE.template, rewrite)}
    for i, (ours, theirs) in enumerate(zip(REPHRASE, TABLE_7.split("\n"), strict=True), start=1):
        pairs[f"prompt {i}"] = (ours.template.removesuffix(" {text}"), theirs)
    return pairs


def styles() -> Pairs:
    return {
        f"style {i}": (ours.template, theirs)
        for i, (ours, theirs) in enumerate(zip(STYLES, STYLE_LINES.split("\n"), strict=True))
    }


def listings() -> Pairs:
    return {
        "listing 1": (RELEVANCE_PASSAGE.template, LISTING_1),
        "its suffixes": (RELEVANCE_PASSAGE.labels, ("0", "1", "2", "3")),
        "listing 2": (RELEVANCE_DOCUMENT.template, LISTING_2),
        "its suffixes, listing 2": (RELEVANCE_DOCUMENT.labels, ("[0]", "[1]", "[2]")),
    }


PROMPTS = {"[K] Table 7": rephrase, "[W] styles": styles, "[R] listings": listings}
