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
from rag_sourcebias.report import figures as pic
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
#: Why each threshold is what it is; a value of None or False switches it off.
_BECAUSE = {
    "length_ratio": "a factor of 2 either way is a summary or an expansion, no rewrite",
    "copied": "one changed word breaks five runs of five words: above .8 fewer than one word in "
    "25 was changed, and a retriever sees two copies",
    "repeated": "at .2 a fifth of the text says again what it said; ordinary prose repeats below "
    ".05",
    "end_kept": "at .25 three of four words that only the original's last quarter has are gone, "
    "relative to the rest: it stops early",
    "chance": "a rewrite that is no more like its original than 99 % of mismatched pairs of the "
    "same file is about something else; needs 20 pairs",
    "cosine": "in addition, for those who know their encoder's scale",
    "numbers_kept": "at 1 any missing number is flagged: one wrong figure makes a document answer "
    "wrongly; numbers added are flagged as well",
    "names_kept": "rewrites may turn a name into a pronoun, so one missing is no fault; below .6 "
    "two in five are gone. A swap and two invented names are flagged at any share",
    "language": "a translation is no rewrite",
    "writing": "refusals, what the model said around the text, endings inside a sentence and "
    "verbatim copies are no rewrites",
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
            for make in (_criteria, _flags, _values, _sole, _worst, _reading, _data)
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
    return b.First(
        answer=_pairs_told(report),
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
    """Return which criteria are met and whether both corpora are equally hard to search."""
    said = (_criteria_told(report), _sole_told(report.sole_corpus))
    return " ".join(filter(None, said))


def _pairs_told(report: PairReport) -> str:
    broken = sum(part.summary.n_broken for part in report.sources)
    flagged = sum(part.summary.n_flagged for part in report.sources)
    pairs = sum(part.summary.n_pairs for part in report.sources)
    of = f"{count(pairs)} pairs"
    if len(report.sources) > 1:
        of += f" with {len(report.sources)} sources"
    facts = flagged - broken
    lost = f"; numbers or names were lost or added in {count(facts)} more ({share(facts / pairs)})"
    more = lost if facts else ""
    if not broken:
        return f"None of {of} is broken{more.replace(' more', '')}."
    are = "is" if broken == 1 else "are"
    part_of = share(broken / pairs)
    return f"{count(broken)} of {of} ({part_of}) {are} broken, no rewrite of the whole text{more}."


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
                _BECAUSE[name],
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
            b.Facts(tables=(("Flags", meanings), ("Thresholds", thresholds))),
        ),
    )


def _flag_table(report: PairReport) -> b.Table:
    names, summaries = _names(report), [part.summary for part in report.sources]
    rows = [
        (
            _words(flag) + (" (broken)" if flag in BROKEN else ""),
            *(_counted(s.flagged.get(flag, 0), s.n_pairs) for s in summaries),
        )
        for flag in _FLAGS
    ]
    rows += [
        ("broken, any of these", *(_counted(s.n_broken, s.n_pairs) for s in summaries)),
        ("any flag", *(_counted(s.n_flagged, s.n_pairs) for s in summaries)),
        ("pairs", *(count(s.n_pairs) for s in summaries)),
    ]
    return b.Table(
        columns=("flag", *(shorten(names[part.source], _NAME) for part in report.sources)),
        rows=tuple(rows),
    )


def _counted(n: int, pairs: int) -> str:
    if not pairs:
        return MISSING
    return f"{count(n)} ({share(n / pairs)})" if n else "0"


def _values(report: PairReport) -> b.Section:
    like = f"cosine ({report.encoder})" if report.encoder else "words in common"
    blocks: list[b.Block] = []
    for part in report.sources:
        drawn = tuple(_histogram(report, part, name) for name in part.histograms)
        if drawn and len(report.sources) > 1:
            blocks.append(b.Heading(text=b.Name(source_name(part.source)), to=b.PAGE))
        if drawn:
            blocks.append(b.Figures(items=drawn, small=True))
    rows = tuple(
        (source_name(part.source), name, *(_value(value, q) for q in part.summary.quantiles[value]))
        for part in report.sources
        for value, name in _VALUES.items()
        if value in part.summary.quantiles
    )
    table = b.Table(columns=("source", "value", "5%", "median", "95%"), rows=rows, n_heads=2)
    return b.Section(
        id="values",
        nav="Likeness",
        title="How alike the pairs are",
        lead="Length ratio, Jaccard and overlap of distinct words (Fig. 3 of Dai et al.) and, with "
        "an encoder, the cosine of both vectors (their Fig. 5).",
        pictures=f" Dotted: thresholds of this report. Dashed: where mismatched pairs end ({like})."
        " Values beyond the edge are in the outer bars.",
        blocks=(
            *blocks,
            b.Grid(table=table, caption="Values of the pairs: 5%, median and 95%"),
        ),
    )


def _histogram(report: PairReport, part: SourcePairs, value: str) -> tuple[str, pic.Histogram]:
    """Show one value of all pairs of a source with its thresholds ([K] Fig. 3 and 5)."""
    found, name, limits = part.histograms[value], _VALUES[value], report.thresholds
    guides = [pic.Guide(at=found.median, colour="ink")]
    if value == "length_ratio":
        guides += [pic.Guide(at=at, look="dotted") for at in limits.length_ratio or ()]
    if value == "cosine" and limits.cosine is not None:
        guides.append(pic.Guide(at=limits.cosine, look="dotted"))
    alike = "cosine" if report.encoder else "overlap"
    if value == alike and part.by_chance is not None:
        guides.append(pic.Guide(at=part.by_chance, look="dashed"))
    filled = np.flatnonzero(found.counts)
    span = (0.0, 1.0)
    if value == "length_ratio":
        span = (0.0, max(2.1, float(found.edges[filled[-1] + 1])))
    elif value == "cosine":
        first = min(float(found.edges[filled[0]]), part.by_chance or 1.0)
        span = (max(0.0, math.floor(10 * (first - 0.02)) / 10), 1.0)
    low, _, high = (number(q, digits=2) for q in part.summary.quantiles[value])
    median = number(found.median, digits=2)
    return f"{capital(name)}, median {median}", pic.Histogram(
        title=f"{name} of the pairs with {source_name(part.source)} documents",
        description=f"{name}: median {median}, from {low} (5%) to {high} (95%).",
        bars=(pic.Bars(heights=tuple(map(float, found.counts))),),
        edges=tuple(map(float, found.edges)),
        x=pic.Axis(label=_AXES[value], span=span),
        y=pic.Axis(label="pairs"),
        guides=tuple(guides),
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
            b.Grid(
                table=_sole_table(report),
                caption="Means ×100 on each corpus alone; p-values are adjusted",
            ),
            *([b.Items(rows=tuple(notes))] if notes else []),
        ),
    )


def _sole_table(report: PairReport) -> b.Table:
    names = _names(report)
    rows = (
        (
            f"{test.system}, {names[test.other]}",
            test.measure,
            score(test.mean_baseline),
            score(test.mean_other),
            estimate(test.difference, scale=100, signed=True),
            p_value(test.p_different_adjusted),
            p_value(test.p_equivalent_adjusted),
            count(test.n_queries),
            _sole_verdict(test),
        )
        for test in report.sole_corpus
    )
    return b.Table(
        columns=(
            "system",
            "measure",
            names[report.baseline_source],
            "other",
            "difference",
            "p different",
            "p equivalent",
            "queries",
            "verdict",
        ),
        rows=tuple(rows),
        n_heads=2,
    )


def _sole_verdict(test: SoleCorpusTest) -> str:
    if test.verdict == "equivalent":
        return f"equivalent within {_points(test.margin)}"
    if test.verdict == "different":
        return "different"
    needed = test.needs_queries
    return "undecided" if needed is None else f"not enough queries: {count(needed)} needed"


def _worst(report: PairReport) -> b.Section | None:
    parts, names = [part for part in report.sources if part.worst], _names(report)
    if not parts:
        return None
    blocks: list[b.Block] = []
    for part in parts:
        source = b.Name(source_name(part.source))
        if len(parts) > 1:
            blocks.append(b.Heading(text=source, to=b.PAGE))
        shown = tuple(_versions(pair, source) for pair in part.worst)
        blocks += shown[:_OPEN]
        more = shown[_OPEN:]
        if more:
            blocks.append(b.Fold(summary=f"{len(more)} more pairs", blocks=more))
        tag = f" ({names[part.source]})" if len(report.sources) > 1 else ""
        lines = (
            (shorten(pair.pair_id, _ID) + tag, shorten("; ".join(pair.reasons), _LINE))
            for pair in part.worst[:_SHOWN]
        )
        blocks.append(b.Items(rows=tuple(lines), to=b.TERMINAL))
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
    flags = tuple(map(_words, pair.flags))
    if not pair.baseline_text and not pair.other_text and pair.baseline_length:
        return b.Items(rows=((pair.pair_id, join(flags)),))
    values = (
        f"{text} {_value(name, pair.values[name])}"
        for name, text in _VALUES.items()
        if name in pair.values
    )
    lost = (*pair.numbers_missing, *pair.names_missing)
    added = (*pair.numbers_added, *pair.names_added)
    return b.Versions(
        name=pair.pair_id,
        where=where,
        broken=pair.broken,
        findings=tuple(zip(flags, pair.reasons, strict=True)),
        values=" · ".join(values),
        sides=(
            _side("gone", "Original", pair.baseline_text, pair.baseline_length, lost),
            _side("new", "Rewrite", pair.other_text, pair.other_length, added),
        ),
    )


def _side(look: str, label: str, text: str, length: int, facts: Sequence[str]) -> b.Side:
    cut = ""
    if length > len(text):
        cut = f"The first {count(len(text))} of {count(length)} characters."
    return b.Side(look=look, label=label, pieces=marked(text, facts), cut=cut)


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


def _reading(_: PairReport) -> b.Section:
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
    ]
    return b.reading(rows)


def _data(report: PairReport) -> b.Section:
    c = report.config
    searched = (
        ("measures", ", ".join(f"{m}@{k}" for m in c.measures for k in c.cutoffs)),
        ("margin of equivalence", f"{_points(c.margin)} (×100)"),
        ("level of the tests", f"{c.level:g}"),
        ("confidence level", level(c.confidence_level)),
        ("family", report.family or MISSING),
        ("tests of each kind", count(report.n_tests)),
        ("documents per query", count(c.depth)),
        ("seed", str(c.seed)),
    )
    rows = (
        ("baseline source", source_name(report.baseline_source)),
        ("encoder", report.encoder or "none: likeness is judged by words in common"),
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
