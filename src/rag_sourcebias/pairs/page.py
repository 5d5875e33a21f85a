"""The order in which a report on a paired corpus is read."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_sourcebias.core.finding import Code, Finding, Frame
from rag_sourcebias.pairs.data import CheckedPair, PairResults, SourcePairs
from rag_sourcebias.pairs.findings import (
    PairsCode,
    Totals,
    criteria,
    criteria_counted,
    doubts,
    equally_hard,
    next_step,
    pairs_broken,
    reasons_of,
    verdict,
    warnings,
)
from rag_sourcebias.pairs.frames import VALUES, frames
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.document import about_section, facts

#: What each flag says of a pair.
_FLAGS = {
    "empty": "one side has no words",
    "refusal": "the model declined instead of rewriting",
    "leftover": "holds what the model said around the text, such as “Sure, here is …”",
    "loop": "repeats itself",
    "language": "another language than the original",
    "unrelated": "no more like its original than texts that have nothing to do with it",
    "truncated": "stops before the original ends, or inside a sentence",
    "copy": "the original word by word",
    "near copy": "the original but for a few words",
    "length": "much shorter or longer than the original",
    "numbers": "numbers of the original are missing, or numbers were added",
    "names": "names of the original are missing, swapped or invented",
}
_AXES = {
    "length_ratio": "words of the rewrite per word of the original",
    "jaccard": "Jaccard: words in common of all words",
    "overlap": "overlap: share of the original's words kept",
    "cosine": "cosine of both vectors",
}
_STANDING: dict[Code, d.Standing] = {
    PairsCode.UNFIT: "other",
    PairsCode.MANY_BROKEN: "other",
    PairsCode.FIT: "baseline",
    PairsCode.UNCHECKED: "",
}
_OPEN, _BRIEF = 5, 3  # pairs that a page shows at once, and a terminal at all


def page(report: PairResults) -> d.Document:
    """Return everything there is to say about a paired corpus."""
    tables = frames(report)
    tests = report.sole_corpus
    return d.Document(
        kind="Check of a paired corpus",
        name=report.data.name or "unnamed data",
        first=_first(report),
        headline=(criteria_counted(report.sources), *([equally_hard(tests)] if tests else [])),
        facts=tuple(
            PairsCode.AGAINST(baseline=report.baseline_source, other=part.source)
            for part in report.sources
        ),
        created=report.created,
        cautions="Before you use this corpus",
        warnings=tuple(warnings(report.sources)),
        sections=(
            _criteria(report, tables),
            _flags(tables),
            _values(report, tables),
            *([_sole(report, tables)] if tests else []),
            *([_worst(report, tables)] if len(tables["worst pairs"]) else []),
            _reading(),
            about_section(tables),
        ),
    )


# The first screen.


def _first(report: PairResults) -> d.First:
    sources, totals = report.sources, Totals.of(report.sources)
    following = next_step(totals, report)
    if not totals.pairs:
        return d.First(answer=pairs_broken(totals), next=following)
    found = verdict(sources)
    return d.First(
        answer=pairs_broken(totals),
        verdict=found,
        standing=_STANDING[found.code],
        doubts=tuple(doubts(totals, report.sole_corpus)),
        rows=tuple(_first_row(part) for part in sources if part.summary.n_pairs),
        next=following,
    )


def _first_row(part: SourcePairs) -> d.FirstRow:
    found = part.summary
    sound, facts = found.n_pairs - found.n_flagged, found.n_flagged - found.n_broken
    counts = PairsCode.PARTS(sound=sound, facts=facts, broken=found.n_broken)
    return d.FirstRow(
        name=d.Name(part.source),
        parts=(
            ("sound", sound, "baseline"),
            ("facts changed", facts, "even"),
            ("broken", found.n_broken, "other"),
        ),
        text=str(counts),
    )


# Sections.


def _criteria(report: PairResults, tables: Mapping[str, Frame]) -> d.Section:
    checks = tuple(
        d.Check(of=part.source, name=found.name, met=found.met, text=found.finding)
        for part in report.sources
        for found in criteria(part.criteria)
    )
    blocks: list[d.Block] = [d.Checks(rows=checks)]
    if len(tables["exceptions"]):
        blocks.append(d.Table(caption="The first exceptions", frame=tables["exceptions"]))
    counts = d.Table(caption="What was counted", frame=tables["criteria"])
    return d.Section(
        id="criteria",
        nav="Criteria",
        title="The three criteria",
        lead="What Dai et al. (KDD 2024, §2) ask of a corpus in which source bias can be measured: "
        "the source of every document is known, judgments hold for every version of a document, "
        "and every document has one counterpart that says the same. Whether it does say the same "
        "is what the checks of the pairs are about.",
        blocks=(*blocks, d.Fold(summary="What was counted", blocks=(counts,))),
        brief=True,
    )


def _flags(tables: Mapping[str, Frame]) -> d.Section:
    return d.Section(
        id="flags",
        title="Flags",
        lead="Pairs by what was found. A broken pair is no rewrite of the whole text; numbers and "
        "names tell of facts that were lost or added in a rewrite. A pair can have several.",
        blocks=(
            d.Table(caption="Pairs by flag", frame=tables["flags"], sparse=True),
            d.Facts(frames=(("Flags", facts(_FLAGS)),)),
            d.Fold(
                summary="Thresholds",
                blocks=(d.Table(caption="Thresholds", frame=tables["thresholds"]),),
            ),
        ),
        brief=True,
    )


def _values(report: PairResults, tables: Mapping[str, Frame]) -> d.Section:
    blocks: list[d.Block] = []
    for part in report.sources:
        drawn = tuple((VALUES[name], _histogram(report, part, name)) for name in part.histograms)
        if len(report.sources) > 1:
            blocks.append(d.Heading(text=d.Name(part.source)))
        blocks.append(d.Pictures(items=drawn, small=True))
    blocks.append(d.Table(caption="Values of the pairs", frame=tables["values"]))
    return d.Section(
        id="values",
        nav="Likeness",
        title="How alike the pairs are",
        lead="Length ratio, Jaccard and overlap of distinct words (Fig. 3 of Dai et al.) and, with "
        "an encoder, the cosine of both vectors (their Fig. 5).",
        note="Dotted: thresholds of this report. Dashed: where mismatched pairs end. Values beyond "
        "the edge are in the outer bars.",
        blocks=tuple(blocks),
    )


def _histogram(report: PairResults, part: SourcePairs, name: str) -> pic.Histogram:
    """Show one value of all pairs of a source with its thresholds ([K] Fig. 3 and 5)."""
    found, (low, median, high) = part.histograms[name], part.summary.quantiles[name]
    spread = PairsCode.SPREAD(source=part.source, low=low, median=median, high=high)
    guides = tuple(_guides(report, part, name))
    filled = np.flatnonzero(found.counts)
    ends = [*found.edges[[filled[0], filled[-1] + 1]].tolist(), *(guide.at for guide in guides)]
    return pic.Histogram(
        title=VALUES[name],
        description=str(spread),
        bars=(pic.Bars(heights=tuple(map(float, found.counts))),),
        edges=tuple(map(float, found.edges)),
        x=pic.Axis(label=_AXES[name], span=(math.floor(10 * min(ends)) / 10, max(1.0, *ends))),
        y=pic.Axis(label="pairs"),
        guides=guides,
    )


def _guides(report: PairResults, part: SourcePairs, name: str) -> Iterator[pic.Guide]:
    yield pic.Guide(at=part.histograms[name].median, colour="ink")
    if name == "length_ratio":
        for at in report.thresholds.length_ratio or ():
            yield pic.Guide(at=at, look="dotted")
    if name == "cosine" and report.thresholds.cosine is not None:
        yield pic.Guide(at=report.thresholds.cosine, look="dotted")
    alike = "cosine" if report.encoder else "overlap"
    if name == alike and part.by_chance is not None:
        yield pic.Guide(at=part.by_chance, look="dashed")


def _sole(report: PairResults, tables: Mapping[str, Frame]) -> d.Section:
    config = report.config
    return d.Section(
        id="sole",
        nav="Each corpus alone",
        title="Each corpus searched alone",
        lead=PairsCode.ALONE(
            baseline=report.baseline_source,
            margin=config.margin,
            level=config.level,
            confidence_level=config.confidence_level,
        ),
        blocks=(
            d.Table(
                caption="Means ×100 on each corpus alone; p-values are adjusted",
                frame=tables["sole corpus"],
            ),
        ),
    )


def _worst(report: PairResults, tables: Mapping[str, Frame]) -> d.Section:
    blocks: list[d.Block] = []
    for part in report.sources:
        shown = [_versions(pair, report, part) for pair in part.worst if pair.baseline_length]
        if len(report.sources) > 1 and shown:
            blocks.append(d.Heading(text=d.Name(part.source)))
        blocks += shown[:_OPEN]
        if shown[_OPEN:]:
            more = PairsCode.MORE_PAIRS(pairs=len(shown) - _OPEN)
            blocks.append(d.Fold(summary=more, blocks=tuple(shown[_OPEN:])))
    worst = tables["worst pairs"]
    first = {name: worst.columns[name][:_BRIEF] for name in ("source", "pair", "flags")}
    blocks.append(
        d.Table(caption="The worst pairs", frame=Frame(columns=first, n_heads=2), brief=True)
    )
    for name, summary in (("facts", "What they lost and gained"), ("worst pairs", "Their values")):
        if len(tables[name]):
            table = d.Table(caption=summary, frame=tables[name])
            blocks.append(d.Fold(summary=summary, blocks=(table,)))
    return d.Section(
        id="worst",
        nav="Worst pairs",
        title="The worst pairs",
        note="Broken pairs first, then those that lost or gained most facts. Marked in the "
        "original is what the rewrite lacks, marked in the rewrite what the original does not say. "
        "Flags are found by rules, not by a reader: some marks are false alarms.",
        blocks=tuple(blocks),
        brief=True,
    )


def _versions(pair: CheckedPair, report: PairResults, part: SourcePairs) -> d.Versions:
    lost = (*pair.numbers_missing, *pair.names_missing)
    added = (*pair.numbers_added, *pair.names_added)
    values = {name: pair.values.get(name) for name in VALUES}
    return d.Versions(
        name=pair.pair_id,
        where=part.source,
        broken=pair.broken,
        findings=reasons_of(pair, report.thresholds, part.by_chance),
        values=str(Finding(code=PairsCode.VALUES, numbers=values)),
        sides=(
            _side("gone", "Original", pair.baseline_text, pair.baseline_length, lost),
            _side("new", "Rewrite", pair.other_text, pair.other_length, added),
        ),
    )


def _side(look: str, label: str, text: str, length: int, changed: Sequence[str]) -> d.Side:
    cut = ""
    if length > len(text):
        cut = str(PairsCode.TEXT_CUT(shown=len(text), length=length))
    return d.Side(look=look, label=label, pieces=marked(text, changed), cut=cut)


def marked(text: str, changed: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """Cut a text where facts stand in it, as whole words, in whatever case.

    Examples
    --------
    >>> marked("In 1990 and 19901", ["1990"])
    (('In ', False), ('1990', True), (' and 19901', False))
    """
    # The longest first: "New York City" is not to be cut at "New York". Without a fact: nothing.
    wanted = sorted({fact for fact in changed if fact.strip()}, key=lambda f: (-len(f), f))
    any_of = "|".join(map(re.escape, wanted)) or "(?!)"
    pieces = re.split(rf"(?<!\w)({any_of})(?!\w)", text, flags=re.IGNORECASE)
    return tuple((piece, bool(place % 2)) for place, piece in enumerate(pieces) if piece)


def _reading() -> d.Section:
    return d.Section(
        id="reading",
        title="How to read this",
        blocks=(
            d.Questions(
                rows=(
                    (
                        "What should I do with flagged pairs?",
                        "Read the worst above, rewrite or leave out the broken ones, and look "
                        "whether flags for numbers and names are real losses. All flagged pairs "
                        "stand in report.json, and every value of every pair in the CSV file of "
                        "its source beside this page.",
                    ),
                    (
                        "How far can the flags be trusted?",
                        "Planted faults on real rewrites were found in 88 to 100 of 100 cases, "
                        "refusals by their wording in 70 (all of them by another flag). About one "
                        "in four flags for numbers and names, read by eye, was none. Facts that "
                        "were turned round (“rose” for “fell”) are not found.",
                    ),
                )
            ),
        ),
    )
