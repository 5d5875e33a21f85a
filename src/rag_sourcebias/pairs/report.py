"""The report on a paired corpus: what it says, in the order in which it says it."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.pairs.data import (
    BROKEN,
    CheckedPair,
    NamedIds,
    PairReport,
    SoleCorpusTest,
    SourcePairs,
)
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.blocks import (
    MISSING,
    capital,
    count,
    estimate,
    join,
    level,
    number,
    p_value,
    score,
    settings,
    share,
    short_names,
    shorten,
    source_name,
)

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
    "near_copy": "the original but for a few words",
    "length": "much shorter or longer than the original",
    "numbers": "numbers of the original are missing, or numbers were added",
    "names": "names of the original are missing, swapped or invented",
}
#: Values of a pair, with what they are.
_VALUES = {
    "length_ratio": "length ratio",
    "jaccard": "Jaccard",
    "overlap": "overlap",
    "cosine": "cosine",
    "copied": "copied runs",
    "repeated": "repetition added",
    "end_kept": "end kept",
    "numbers_kept": "numbers kept",
    "names_kept": "names kept",
}
_SHARES = ("copied", "repeated", "end_kept", "numbers_kept", "names_kept")
_AXES = {
    "length_ratio": "words of the rewrite per word of the original",
    "jaccard": "Jaccard: words in common of all words",
    "overlap": "overlap: share of the original's words kept",
    "cosine": "cosine of both vectors",
}
_THRESHOLDS = {
    "length_ratio": "length ratio, lowest and highest",
    "copied": "copied runs of five words, at most",
    "repeated": "repetition added, at most",
    "end_kept": "end kept, at least",
    "chance": "more alike than this share of mismatched pairs",
    "cosine": "cosine, at least",
    "numbers_kept": "numbers kept, at least",
    "names_kept": "names kept, at least",
    "language": "language",
    "writing": "refusals, leftovers, open ends, copies",
}
_MUCH = 0.05  # share of broken pairs
_OPEN, _SHOWN = 5, 3  # pairs that a page shows at once, and a terminal at all
_NAME, _ID, _LINE = 40, 48, 300  # characters


def document(report: PairReport) -> b.Document:
    """Return everything there is to say about a paired corpus."""
    name = report.data.name or "unnamed data"
    return b.Document(
        kind="Check of a paired corpus",
        title=f"Paired corpus: {name}",
        name=name,
        first=first(report),
        headline=headline(report),
        facts=(
            (
                f"{source_name(report.baseline_source)} against ",
                b.Name(", ".join(source_name(part.source) for part in report.sources)),
            ),
        ),
        created=report.created,
        cautions="Before you use this corpus",
        warnings=report.warnings,
        sections=tuple(
            found
            for make in (_findings, _criteria, _flags, _values, _sole, _worst, _reading, _data)
            if (found := make(report)) is not None
        ),
    )


# The first screen


def first(report: PairReport) -> b.First:
    """Return the first screen: how many pairs are broken, and what to do next."""
    parts = report.sources
    pairs = sum(part.summary.n_pairs for part in parts)
    broken = sum(part.summary.n_broken for part in parts)
    flagged = sum(part.summary.n_flagged for part in parts)
    data = b.data_argument(report.data.name)
    if not pairs:
        return b.First(
            answer="No document has a counterpart of another source.",
            why="Make some:",
            command=f"rag-sourcebias rewrite {data} --output paired",
        )
    are = "is" if broken == 1 else "are"
    answer = (
        f"{count(broken)} of {count(pairs)} pairs {are} broken: no rewrite of the whole text."
        if broken
        else f"None of {count(pairs)} pairs is broken, by the rules."
    )
    return b.First(
        answer=answer,
        verdict=_usable(report, broken / pairs),
        standing=_first_standing(report, broken / pairs),
        doubts=_first_doubts(report.sole_corpus),
        rows=tuple(
            _first_row(part, names_all=len(parts) > 1) for part in parts if part.summary.n_pairs
        ),
        why="Repair or drop the flagged pairs:" if broken else "Audit with it:",
        command=f"rag-sourcebias check-pairs {data} --output sound"
        if flagged and broken
        else f"rag-sourcebias audit source {data} --retriever bm25",
    )


def _first_row(part: SourcePairs, *, names_all: bool) -> b.FirstRow:
    s = part.summary
    counts = (s.n_pairs - s.n_flagged, s.n_flagged - s.n_broken, s.n_broken)
    return b.FirstRow(
        name=b.Name(source_name(part.source)) if names_all else "",
        parts=(
            ("sound", counts[0], "baseline"),
            ("facts changed", counts[1], "even"),
            ("broken", counts[2], "other"),
        ),
        text=" / ".join(map(count, counts)) if names_all else "",
    )


def _first_standing(report: PairReport, broken: float) -> str:
    met = [met for part in report.sources for _, _, met, _ in _checks(part)]
    if broken > _MUCH or any(found is False for found in met):
        return "other"
    return "baseline" if all(met) else ""


def _usable(report: PairReport, broken: float) -> str:
    """Say whether the corpus meets what an audit assumes, and what was not checked."""
    found = [(name, met) for part in report.sources for _, name, met, _ in _checks(part)]
    failed = list(dict.fromkeys(name for name, met in found if met is False))
    unknown = list(dict.fromkeys(name for name, met in found if met is None))
    if failed:
        return f"Verdict: not fit for an audit as it is ({join(failed)}: not met)."
    if broken > _MUCH:
        return "Verdict: too many pairs are broken for an audit as it is."
    if unknown:
        return f"Not checked: {join(unknown)}."
    return "Verdict: fit for an audit, by its form."


def _first_doubts(tests: Sequence[SoleCorpusTest]) -> tuple[str, ...]:
    if any(test.verdict == "different" for test in tests):
        return ("Searched alone, one source is harder to find than the other.",)
    if tests and not all(test.verdict == "equivalent" for test in tests):
        return ("Whether both sources are as easy to find cannot be told.",)
    return ()


# The headline: no more certain than its tests


def headline(report: PairReport) -> str:
    """Return what a reader in a hurry should take away."""
    return " ".join(
        filter(None, (_pairs_told(report), _criteria_told(report), _sole_told(report.sole_corpus)))
    )


def _pairs_told(report: PairReport) -> str:
    if len(report.sources) == 1:
        return _pairs_sentence(report.sources[0])
    broken = sum(part.summary.n_broken for part in report.sources)
    pairs = sum(part.summary.n_pairs for part in report.sources)
    of = f"{count(pairs)} pairs with {len(report.sources)} sources"
    if not broken:
        return f"None of {of} is broken."
    worst = max(report.sources, key=lambda part: part.broken_share)
    return (
        f"Of {of} {count(broken)} ({share(broken / pairs)}) are broken, no rewrites of the "
        f"whole text; most with {_names(report)[worst.source]} ({share(worst.broken_share)})."
    )


def _pairs_sentence(part: SourcePairs) -> str:
    s, pairs = part.summary, count(part.summary.n_pairs)
    if not s.n_pairs:
        return f"No document has a counterpart that is {source_name(part.source)}."
    facts = s.n_flagged - s.n_broken
    lost = f"; numbers or names were lost or added in {count(facts)}"
    part_of = f"({share(facts / s.n_pairs)})"
    if not s.n_broken:
        where = f"{lost} {part_of}" if facts else "; numbers or names were lost or added in none"
        return f"None of {pairs} pairs is broken{where}."
    return (
        f"{count(s.n_broken)} of {pairs} pairs ({share(part.broken_share)}) "
        f"{'is' if s.n_broken == 1 else 'are'} broken, no rewrite of the whole text"
        f"{f'{lost} more {part_of}' if facts else ''}."
    )


def _criteria_told(report: PairReport) -> str:
    found = [(name, met) for part in report.sources for _, name, met, _ in _checks(part)]
    parts = [
        f"{what}: {join(names)}"
        for what, code in (("not met", False), ("not checked", None))
        if (names := list(dict.fromkeys(name for name, met in found if met is code)))
    ]
    if not parts:
        return "All three criteria of a paired corpus are met."
    return f"Criteria of a paired corpus {'; '.join(parts)}."


def _sole_told(tests: Sequence[SoleCorpusTest]) -> str:
    if not tests:
        return ""
    found = Counter(test.verdict for test in tests)
    same, other = found["equivalent"], found["different"]
    end = f" and differ on {other}" if other else "; none shows a difference"
    return (
        f"Searched alone, both corpora are equally hard within {_points(tests[0].margin)} on "
        f"{same} of {len(tests)} measures{end if same < len(tests) else ''}."
    )


# Sections


def _findings(report: PairReport) -> b.Section:
    return b.Section(
        id="findings",
        title="Findings",
        blocks=(
            b.Cards(cards=tuple(map(_card, report.sources)), look="checked"),
            *(
                (b.Heading(text="Each corpus searched alone", to=b.PAGE), _alone(report, b.PAGE))
                if report.sole_corpus
                else ()
            ),
        ),
    )


def _card(part: SourcePairs) -> b.Card:
    summary, checks = part.summary, _checks(part)
    bad = not summary.n_pairs or part.broken_share > _MUCH
    met = all(met for _, _, met, _ in checks)
    return b.Card(
        name=source_name(part.source),
        standing="bad" if bad else "good" if met else "some",
        short=f"{share(part.broken_share)} of {count(summary.n_pairs)} pairs broken"
        if summary.n_pairs
        else "No pairs",
        text=_pairs_sentence(part),
        rows=(
            *(b.CardRow(name=name, value=b.MET[met]) for _, name, met, _ in checks),
            b.CardRow(name="pairs with any flag", value=count(summary.n_flagged)),
        ),
    )


def _criteria(report: PairReport) -> b.Section:
    return b.Section(
        id="criteria",
        nav="Criteria",
        title="The three criteria",
        lead="What Dai et al. (KDD 2024, §2) ask of a corpus in which source bias can be measured: "
        "the source of every document is known, judgments hold for every version of a document, "
        "and every document has one counterpart that says the same. Whether it does say the same "
        "is what the checks of the pairs are about.",
        blocks=(b.Checks(rows=tuple(row for part in report.sources for row in _checks(part))),),
    )


def _checks(part: SourcePairs) -> list[tuple[str, str, bool | None, str]]:
    """Return the criteria of [K] §2 for one source, with what was counted."""
    found, source = part.criteria, source_name(part.source)

    def counted(*rows: tuple[NamedIds, str]) -> list[str]:
        return [f"{_ids(ids)} {what}" for ids, what in rows if ids.n]

    labels = {
        None: "no judgments to check",
        True: f"{count(found.n_labels)} judgments hold for both versions",
        False: "; ".join(
            counted(
                (found.labels_missing, "not copied"),
                (found.labels_differ, "with another grade"),
                (found.labels_added, "for the counterpart only"),
            )
        ),
    }
    alone = counted(
        (found.baseline_alone, "originals without a counterpart"),
        (found.other_alone, "rewrites without an original"),
        (found.repeated, "further versions of one document"),
    )
    return [
        (
            source,
            "source known",
            found.sources_known,
            f"all {count(found.n_documents)} documents have a source"
            if found.sources_known
            else f"{_ids(found.untagged)} of {count(found.n_documents)} documents have none",
        ),
        (source, "labels copied", found.labels_copied, labels[found.labels_copied]),
        (
            source,
            "one to one",
            found.one_to_one and found.n_pairs > 0,
            "; ".join([f"{count(found.n_pairs)} pairs", *alone]),
        ),
    ]


def _ids(found: NamedIds) -> str:
    return count(found.n) + (f" (first {', '.join(found.first[:3])})" if found.first else "")


def _flags(report: PairReport) -> b.Section:
    meanings = b.Table(
        columns=("flag", "means"), rows=tuple((_words(f), text) for f, text in _FLAGS.items())
    )
    thresholds = b.Table(
        columns=("threshold", "because"),
        rows=tuple(
            (
                f"{text}: {_threshold(getattr(report.thresholds, name))}",
                report.threshold_reasons.get(name, MISSING),
            )
            for name, text in _THRESHOLDS.items()
        ),
    )
    return b.Section(
        id="flags",
        title="Flags",
        lead="Pairs by what was found. A broken pair is no rewrite of the whole text; numbers and "
        "names tell of facts that were lost or added in a rewrite. A pair can have several.",
        blocks=(
            b.Grid(
                table=_flag_table(report), caption="Pairs by flag", sparse=True, to=b.EVERYWHERE
            ),
            b.Fold(
                summary="What the flags mean, and the thresholds behind them",
                blocks=(b.Facts(tables=(("Flags", meanings), ("Thresholds", thresholds))),),
                to=b.PAGE,
            ),
            b.Heading(text="Thresholds", to=b.MARKDOWN),
            b.Grid(table=thresholds, caption="Thresholds", to=b.MARKDOWN),
        ),
    )


def _flag_table(report: PairReport) -> b.Table:
    names, summaries = _names(report), [part.summary for part in report.sources]
    counted = {
        **{
            _words(flag) + " (broken)" * (flag in BROKEN): [
                s.flagged.get(flag, 0) for s in summaries
            ]
            for flag in _FLAGS
        },
        "broken, any of these": [s.n_broken for s in summaries],
        "any flag": [s.n_flagged for s in summaries],
    }

    def cell(n: int, pairs: int) -> str:
        return MISSING if not pairs else f"{count(n)} ({share(n / pairs)})" if n else "0"

    return b.Table(
        columns=("flag", *(shorten(names[part.source], _NAME) for part in report.sources)),
        rows=(
            *(
                (name, *(cell(n, s.n_pairs) for n, s in zip(found, summaries, strict=True)))
                for name, found in counted.items()
            ),
            ("pairs", *(count(s.n_pairs) for s in summaries)),
        ),
    )


def _values(report: PairReport) -> b.Section:
    drawn = [part for part in report.sources if part.histograms]
    several = len(report.sources) > 1
    like = f"cosine ({report.encoder})" if report.encoder else "words in common"
    return b.Section(
        id="values",
        nav="Likeness",
        title="How alike the pairs are",
        lead="Length ratio, Jaccard and overlap of distinct words (Fig. 3 of Dai et al.) and, with "
        "an encoder, the cosine of both vectors (their Fig. 5).",
        pictures=f" Dotted: thresholds of this report. Dashed: where mismatched pairs end ({like})."
        " Values beyond the edge are in the outer bars.",
        blocks=(
            *(
                block
                for part in drawn
                for block in (
                    *[b.Heading(text=b.Name(source_name(part.source)), to=b.PAGE)]
                    * (len(drawn) > 1),
                    b.Figures(
                        items=tuple(_histogram(report, part, name) for name in part.histograms),
                        small=True,
                    ),
                )
            ),
            b.Grid(
                table=b.Table(
                    columns=(*["source"] * several, "value", "5%", "median", "95%"),
                    rows=tuple(
                        (
                            *[source_name(part.source)] * several,
                            name,
                            *(_value(value, q) for q in part.summary.quantiles[value]),
                        )
                        for part in report.sources
                        for value, name in _VALUES.items()
                        if value in part.summary.quantiles
                    ),
                    n_heads=1 + several,
                ),
                caption="Values of the pairs: 5%, median and 95%",
                to=b.FILES if drawn else b.MARKDOWN,
            ),
        ),
    )


def _histogram(report: PairReport, part: SourcePairs, value: str) -> tuple[str, pic.Histogram]:
    """Show one value of all pairs of a source with its thresholds ([K] Fig. 3 and 5)."""
    found, name, limits = part.histograms[value], _VALUES[value], report.thresholds
    chance = part.by_chance if value == ("cosine" if report.encoder else "overlap") else None
    thresholds: dict[str, tuple[float | None, ...]] = {
        "length_ratio": limits.length_ratio or (),
        "cosine": (limits.cosine,),
    }
    filled = np.flatnonzero(found.counts)
    first, last = float(found.edges[filled[0]]), float(found.edges[filled[-1] + 1])
    first = min(first, 1.0 if chance is None else chance)
    spans = {
        "length_ratio": (0.0, max(2.1, last)),
        "cosine": (max(0.0, math.floor(10 * (first - 0.02)) / 10), 1.0),
    }
    low, _, high = (number(q, digits=2) for q in part.summary.quantiles[value])
    median = number(found.median, digits=2)
    return f"{capital(name)}, median {median}", pic.Histogram(
        title=f"{name} of the pairs with {source_name(part.source)} documents",
        description=f"{name}: median {median}, from {low} (5%) to {high} (95%).",
        bars=(pic.Bars(heights=tuple(map(float, found.counts))),),
        edges=tuple(map(float, found.edges)),
        x=pic.Axis(label=_AXES[value], span=spans.get(value, (0.0, 1.0))),
        y=pic.Axis(label="pairs"),
        guides=(
            pic.Guide(at=found.median, colour="ink"),
            *(
                pic.Guide(at=at, look="dotted")
                for at in thresholds.get(value, ())
                if at is not None
            ),
            *(pic.Guide(at=at, look="dashed") for at in (chance,) if at is not None),
        ),
    )


def _sole(report: PairReport) -> b.Section | None:
    if not report.sole_corpus:
        return None
    c = report.config
    notes = dict.fromkeys(
        (f"{test.system}, {test.measure}", note)
        for test in report.sole_corpus
        for note in (test.note, test.refusal)
        if note
    )
    return b.Section(
        id="sole",
        nav="Each corpus alone",
        title="Each corpus searched alone",
        lead=f"The same queries on the {source_name(report.baseline_source)} documents alone and "
        "on their rewrites alone. If both are equally hard, a difference in the mixed corpus is "
        "not one of quality. A p-value that shows no difference does not show that there is none: "
        f"“equivalent” means that a difference of {_points(c.margin)} or more is excluded at level "
        f"{c.level:g}, after correction. Differences carry {level(c.confidence_level)} intervals, "
        "×100.",
        blocks=(
            _alone(report, (*b.MARKDOWN, *b.TERMINAL)),
            b.Grid(
                table=_sole_table(report),
                caption="Means ×100 on each corpus alone; p-values are adjusted",
            ),
            *(
                (b.Heading(text="Notes", to=b.PAGE), b.Items(rows=tuple(notes), to=b.PAGE))
                if notes
                else ()
            ),
        ),
    )


def _sole_table(report: PairReport) -> b.Table:
    names, tests = _names(report), report.sole_corpus
    several = len({test.other for test in tests}) > 1

    def verdict(test: SoleCorpusTest) -> str:
        if test.verdict == "open":
            needed = test.needs_queries
            return "undecided" if needed is None else f"not enough queries: {count(needed)} needed"
        within = f" within {_points(test.margin)}" if test.verdict == "equivalent" else ""
        return f"{test.verdict}{within}"

    return b.Table(
        columns=(
            "system",
            "measure",
            names[report.baseline_source],
            "other" if several else names[tests[0].other],
            "difference",
            "p different",
            "p equivalent",
            "queries",
            "verdict",
        ),
        rows=tuple(
            (
                f"{test.system}, {names[test.other]}" if several else test.system,
                test.measure,
                score(test.mean_baseline),
                score(test.mean_other),
                estimate(test.difference, scale=100, signed=True),
                p_value(test.p_different_adjusted),
                p_value(test.p_equivalent_adjusted),
                count(test.n_queries),
                verdict(test),
            )
            for test in tests
        ),
        n_heads=2,
    )


def _alone(report: PairReport, to: tuple[b.Output, ...]) -> b.Statements:
    """Say for which measures the two corpora are equally hard, by retriever and source."""
    groups: dict[tuple[str, str], list[SoleCorpusTest]] = {}
    for test in report.sole_corpus:
        groups.setdefault((test.system, test.other), []).append(test)
    names, several = _names(report), len({other for _, other in groups}) > 1
    return b.Statements(
        rows=tuple(
            (system, names[other] if several else "", _sole_sentence(tests))
            for (system, other), tests in groups.items()
        ),
        about=", each corpus alone",
        to=to,
    )


def _sole_sentence(tests: Sequence[SoleCorpusTest]) -> str:
    few = [t for t in tests if t.needs_queries is not None]
    needed = sorted(t.needs_queries or 0 for t in few)
    span = " to ".join(dict.fromkeys(count(n) for n in (*needed[:1], *needed[-1:])))
    different = [t for t in tests if t.verdict == "different"]
    said = (
        (
            f"equivalent within {_points(tests[0].margin)}",
            [t for t in tests if t.verdict == "equivalent"],
        ),
        (
            "different, rewrites alone score lower",
            [t for t in different if t.mean_other < t.mean_baseline],
        ),
        (
            "different, rewrites alone score higher",
            [t for t in different if t.mean_other >= t.mean_baseline],
        ),
        (f"not enough queries ({count(tests[0].n_queries)}; about {span} needed)", few),
        (
            "neither shown to be equivalent nor to differ",
            [t for t in tests if t.verdict == "open" and t.needs_queries is None],
        ),
    )
    return "; ".join(f"{what}: {join([t.measure for t in of])}" for what, of in said if of)


def _worst(report: PairReport) -> b.Section | None:
    parts, names = [part for part in report.sources if part.worst], _names(report)
    if not parts:
        return None
    several, blocks = len(parts) > 1, list[b.Block]()
    for part in parts:
        source = b.Name(source_name(part.source))
        shown = [_versions(pair, source) for pair in part.worst]
        more = tuple(shown[_OPEN:])
        folded = b.Fold(
            summary=f"{len(more)} more pairs", of=source if several else "", blocks=more
        )
        tag = names[part.source] if len(report.sources) > 1 else ""
        blocks += [
            *[b.Heading(text=source, to=b.PAGE)] * several,
            *shown[:_OPEN],
            *[folded] * bool(more),
            b.Statements(
                rows=tuple(
                    (shorten(pair.pair_id, _ID), tag, shorten("; ".join(pair.reasons), _LINE))
                    for pair in part.worst[:_SHOWN]
                ),
                to=b.TERMINAL,
            ),
        ]
    return b.Section(
        id="worst",
        nav="Worst pairs",
        title="The worst pairs",
        pictures="Broken pairs first, then those that lost or gained most facts. Marked in the "
        "original is what the rewrite lacks, marked in the rewrite what the original does not say. "
        "Flags are found by rules, not by a reader: some marks are false alarms.",
        blocks=tuple(blocks),
    )


def _versions(pair: CheckedPair, where: str) -> b.Block:
    def side(look: str, label: str, text: str, length: int, facts: Sequence[str]) -> b.Side:
        return b.Side(
            look=look,
            label=label,
            pieces=marked(text, facts),
            cut=f"The first {count(len(text))} of {count(length)} characters."
            if length > len(text)
            else "",
        )

    if not pair.baseline_text and not pair.other_text and pair.baseline_length:
        return b.Items(rows=((pair.pair_id, join([_words(flag) for flag in pair.flags])),))
    return b.Versions(
        name=pair.pair_id,
        where=where,
        broken=pair.broken,
        findings=tuple(zip(map(_words, pair.flags), pair.reasons, strict=True)),
        values=" · ".join(
            f"{text} {_value(name, pair.values[name])}"
            for name, text in _VALUES.items()
            if name in pair.values
        ),
        sides=(
            side(
                "gone",
                "Original",
                pair.baseline_text,
                pair.baseline_length,
                (*pair.numbers_missing, *pair.names_missing),
            ),
            side(
                "new",
                "Rewrite",
                pair.other_text,
                pair.other_length,
                (*pair.numbers_added, *pair.names_added),
            ),
        ),
    )


def marked(text: str, facts: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """Cut a text where facts stand in it, as whole words, in whatever case.

    Examples
    --------
    >>> marked("In 1990 and 19901", ["1990"])
    (('In ', False), ('1990', True), (' and 19901', False))
    """
    # The longest first: "New York City" is not to be cut at "New York". Without a fact: nothing.
    wanted = sorted({fact for fact in facts if fact.strip()}, key=lambda f: (-len(f), f))
    any_of = "|".join(map(re.escape, wanted)) or "(?!)"
    return tuple(
        (piece, bool(i % 2))
        for i, piece in enumerate(re.split(rf"(?<!\w)({any_of})(?!\w)", text, flags=re.IGNORECASE))
        if piece
    )


def _reading(report: PairReport) -> b.Section:
    rows = [
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
    margin = (
        f"Why a margin of {_points(report.config.margin)}?",
        "No test can show that two means are exactly equal, only that they differ by less "
        "than a margin. The default of 5 points is below the 7 to 12 points of NDCG@1 by "
        "which neural models favour rewrites on the mixed SciFact of Dai et al. (Table "
        "4), and some 200 queries can show it; half of it needs four times as many.",
    )
    return b.reading([*rows, *[margin] * bool(report.sole_corpus)])


def _data(report: PairReport) -> b.Section:
    c = report.config
    searched = (
        ("measures", ", ".join(f"{m}@{k}" for m in c.measures for k in c.cutoffs)),
        ("margin of equivalence", f"{_points(c.margin)} (×100)"),
        ("level of the tests", f"{c.level:g}"),
        ("confidence level", level(c.confidence_level)),
        ("family", report.family or MISSING),
        ("tests of each kind", count(report.n_tests)),
        ("ties", c.ties),
        ("gain", c.gain),
        ("documents per query", count(c.depth)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    rows = (
        ("baseline source", source_name(report.baseline_source)),
        ("encoder", report.encoder or "none: likeness is judged by words in common"),
        ("pairs shown", f"the {count(c.worst)} worst of each source"),
        ("characters shown", count(c.text_limit)),
        *(searched if report.sole_corpus else ()),
    )
    return b.data(
        (
            ("Data", b.summary_table(report.data)),
            ("Checks", b.Table(columns=("setting", ""), rows=rows)),
            (
                "Encoder and retrievers",
                b.Table(
                    columns=("system", "settings"),
                    rows=tuple((name, settings(found)) for name, found in report.settings.items()),
                ),
            ),
            ("Environment", b.environment_table(report.environment, report.created)),
        )
    )


# Words


def _names(report: PairReport) -> dict[str, str]:
    return short_names([report.baseline_source, *(part.source for part in report.sources)])


def _words(flag: str) -> str:
    return flag.replace("_", " ")


def _value(name: str, value: float) -> str:
    return share(value) if name in _SHARES else number(value, digits=2)


def _threshold(value: bool | float | tuple[float, float] | None) -> str:
    """Return a threshold such as ``0.5 to 2``, ``on`` or ``off``."""
    if value is None or isinstance(value, bool):
        return "on" if value else "off"
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join(f"{end:g}" for end in ends).replace("-", "\u2212")


def _points(margin: float) -> str:  # ×100, such as "±5"
    return f"±{100 * margin:.6g}"
