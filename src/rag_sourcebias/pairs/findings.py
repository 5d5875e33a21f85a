"""What is said of pairs and of a paired corpus: each sentence once, and when it is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rag_sourcebias.core.finding import Code, Finding
from rag_sourcebias.pairs.data import (
    MIN_PAIRS,
    CheckedPair,
    PairCriteria,
    PairResults,
    PairThresholds,
    SoleCorpusTest,
    SourcePairs,
)

MUCH = 0.05  # share of broken pairs: more than twice that of the rewrites of nq-utd, 2 %
_MANY_UNRELATED = 0.2  # share of pairs: ten times as many as are broken there in any way


class PairsCode(Code, home="pairs"):
    """What a check of a paired corpus can find."""

    # What begins.
    CHECKING = "{source}: checking {pairs:pair|pairs}"
    SEARCHING = "{system}: {documents:document|documents} of {source} alone"

    # The corpus as a whole.
    NO_PAIRS = "No document has a counterpart of another source."
    NONE_BROKEN = "Of {pairs:pair|pairs}, none is broken."
    BROKEN = (
        "Of {pairs:pair|pairs}, {broken:is|are} broken ({share:percent}): no rewrite of the whole "
        "text."
    )
    FACTS = (
        "Numbers or names were lost or added in {facts:pair that is|pairs that are} not broken "
        "({share:percent})."
    )
    PARTS = "{sound} / {facts} / {broken}"
    AGAINST = "{baseline} against {other}"
    UNFIT = "Verdict: not fit for an audit as it is; {failed:criterion is|criteria are} not met."
    MANY_BROKEN = "Verdict: too many pairs are broken for an audit as it is."
    UNCHECKED = "Not checked: whether judgments hold for both versions."
    FIT = "Verdict: fit for an audit, by its form."
    CRITERIA = "Criteria of a paired corpus: {met} met, {failed} not met, {unchecked} not checked."

    # What to do next.
    NEXT_REPAIR = (
        "Repair or drop the flagged pairs: `rag-sourcebias check-pairs {data} --output sound`"
    )
    NEXT_AUDIT = "Audit with it: `rag-sourcebias audit source {data} --retriever bm25`"

    # The criteria.
    SOURCES_KNOWN = "A source is known for each of {documents:document|documents}."
    SOURCES_UNKNOWN = "No source is known for {untagged} of {documents:document|documents}."
    LABELS_COPIED = "Judgments that hold for both versions: all {labels}."
    LABELS_UNCHECKED = "There are no judgments to check."
    LABELS_DIFFER = (
        "Of {labels:judgment|judgments} of originals, {missing} not copied and {differ} with "
        "another grade; {added} of the rewrite only."
    )
    ONE_TO_ONE = "Pairs: {pairs}. Every document is in one."
    NOT_ONE_TO_ONE = (
        "Pairs: {pairs}. Originals without a rewrite: {originals}; rewrites without an original: "
        "{rewrites}; further versions of a document: {repeated}."
    )

    # Why a pair was flagged.
    EMPTY = "one side has no words"
    REFUSAL = "the model declined"
    LEFTOVER = "not part of the text: {text}"
    LOOP = "{repeated:percent0} more of it repeats itself than of the original"
    LANGUAGE = "written in {written}, the original in {original}"
    UNLIKE_WORDS = "overlap {overlap:2}; mismatched pairs reach {chance:2}"
    UNLIKE_VECTORS = "cosine {cosine:2}; mismatched pairs reach {chance:2}"
    COSINE = "cosine {cosine:2}, below the threshold of {threshold:2}"
    CUT_OFF = (
        "stops before the original ends ({end_kept:percent0} of its end is kept, relative to the "
        "rest)"
    )
    OPEN_END = "ends inside a sentence"
    COPY = "the original word by word"
    NEAR_COPY = "{copied:percent0} of its five-word runs are the original's"
    LENGTH = "{length_ratio:2} times the original's length"
    NUMBERS = "numbers missing: {missing}, added: {added}"
    NAMES = "names missing: {missing}, added: {added}"
    VALUES = (
        "length ratio {length_ratio:2} · Jaccard {jaccard:2} · overlap {overlap:2} · cosine "
        "{cosine:2} · copied runs {copied:2} · repetition added {repeated:2} · end kept "
        "{end_kept:2} · numbers kept {numbers_kept:2} · names kept {names_kept:2}"
    )
    TEXT_CUT = "The first {shown} of {length:character|characters}."
    MORE_PAIRS = "{pairs:more pair|more pairs}"
    SPREAD = "With {source}: median {median:2}, from {low:2} (5%) to {high:2} (95%)."

    # Each corpus searched alone.
    ALONE = (
        "The same queries on the documents of {baseline} alone and on their rewrites alone. If "
        "both are equally hard, a difference in the mixed corpus is not one of quality. A p-value "
        "that shows no difference does not show that there is none: “equivalent” means that a "
        "difference of ±{margin:score} or more is excluded at level {level:2}, after correction. "
        "Differences carry {confidence_level:level} intervals, ×100. “differing” counts the "
        "queries on which both differ, where they are too few for a t test."
    )
    ALONE_ALIKE = (
        "Searched alone, both corpora are equally hard within ±{margin:score} on all "
        "{tests:measure|measures}."
    )
    ALONE_SOME = (
        "Searched alone, both corpora are equally hard within ±{margin:score} on {same} of "
        "{tests:measure|measures}; none shows a difference."
    )
    ALONE_DIFFER = (
        "Searched alone, both corpora are equally hard within ±{margin:score} on {same} of "
        "{tests:measure|measures} and differ on {differ}, not always the same way."
    )
    ALONE_REWRITES_HARDER = (
        "Searched alone, rewrites are harder to find on {differ} of {tests:measure|measures}."
    )
    ALONE_ORIGINALS_HARDER = (
        "Searched alone, originals are harder to find on {differ} of {tests:measure|measures}."
    )
    HARDER = "Searched alone, one source is harder to find than the other."
    UNDECIDED = "Whether both sources are as easy to find cannot be told."
    TEST_EQUIVALENT = "equivalent within ±{margin:score}"
    TEST_DIFFERENT = "different"
    TEST_UNDECIDED = "undecided"
    TEST_NEEDS = "not enough queries"

    # Before the report is trusted.
    FEW_PAIRS = (
        "{source}: {pairs:pair is|pairs are} too few to know how alike mismatched pairs are, so "
        "rewrites of another text are not recognised"
    )
    MANY_UNRELATED = (
        "{source}: {unrelated} of {pairs:rewrite|rewrites} are no more like their original than "
        "mismatched pairs ({chance:2}): either they are no rewrites of them, or all texts of this "
        "corpus resemble one another; use an encoder, or switch the threshold chance off"
    )
    QUERIES_LEFT_OUT = (
        "{source}: {left_out} of {queries:judged query|judged queries} have no text or no relevant "
        "document in one of the two corpora, and are left out of the comparison of corpora "
        "searched alone"
    )

    # What becomes of the corpus.
    SOUND_PAIRS = (
        "sound pairs: {folder} ({documents:document|documents} of each source, "
        "{queries:query|queries})"
    )
    ABOVE_LIMIT = (
        "failed: broken pairs with {source}: {broken} of {pairs}, more than --fail-above "
        "{limit:percent}"
    )
    EMPTY_SOURCE = "failed: no pairs with {source}"

    # Rewriting a corpus: before it is asked, and afterwards.
    TO_ASK = (
        "{documents:document|documents} × {prompts:prompt|prompts}: {requests:request|requests}, "
        "{cached} answered already"
    )
    TO_READ = (
        "about {read:token|tokens} to read and {written} to write if rewrites are as long as their "
        "documents, {most} to write at most (4 characters a token)"
    )
    TO_PAY = "about {cost:4} {currency}, at most {most:4}"
    PRICES_NEEDED = "give --price-in and --price-out for the cost"
    WOULD_BE_REFUSED = "but this command would be refused: {why}"
    NOTHING_ASKED = "nothing was asked"
    SKIPPED = "{source}: {documents} skipped, {reason} ({meaning}), first {first}"
    FAILED = "{source}: {documents} failed, {reason} ({meaning}), first {first}: {error}"
    ASK_AGAIN = "run the same command again: it asks only for the documents that failed"
    CUT_SHORT = "a higher --max-tokens, in another folder, would let cut-off rewrites end"
    THIS_RUN = (
        "this run: {requests:request|requests} ({from_cache} answered before or equal to another, "
        "{retries:retry|retries}), {read:token|tokens} read, {written} written"
    )
    WHOLE_FOLDER = "whole folder: {read:token|tokens} read, {written} written"
    PAID = "that cost {cost:4} {currency}"
    NONE_REWRITTEN = "there is no rewrite: try another --model or --prompts"
    NEXT = "next: `rag-sourcebias {verb} {folder}`"
    NOT_JUDGED = (
        "without queries and judgments there is no audit of rankings: add queries.jsonl and "
        "qrels/test.tsv to the folder for one"
    )

    # Annotation by people: sheets, and what came back.
    DRAWN = (
        "{drawn} of {pairs:pair|pairs}, {annotators:annotator|annotators}, "
        "{questions:question|questions}"
    )
    KEY_WRITTEN = "key: {path} (keep it from annotators)"
    NEXT_SHEETS = "when they are filled in: `rag-sourcebias annotate {files}`"
    ANNOTATED = "{pairs:pair|pairs}, {annotators:annotator|annotators}"
    TOO_FEW_ANSWERS = "{question}: {few:pair|pairs} left out for too few answers"
    UNANSWERED = "{question}: {unanswered} of the questions asked have no answer"
    HABIT = (
        "{question}: text A was chosen {first} times and text B {second} times: order was random, "
        "so this is a habit of annotators"
    )
    MIND = "{question}: {why}"
    NO_TWO_ANSWERS = "no unit has two answers"
    ONE_CATEGORY = "undefined: all answers are the same category"
    ONE_UNIT = "one unit: no interval"
    OFTEN_UNDEFINED = "no interval: undefined in {undefined} of {resamples:resample|resamples}"
    SAME_IN_ALL = "no interval: every resample gives this value"


# Why a pair was flagged.


def reasons_of(
    pair: CheckedPair, thresholds: PairThresholds, by_chance: float | None
) -> tuple[Finding, ...]:
    """Return a finding for each flag of a pair.

    Parameters
    ----------
    by_chance : float or None
        As in :class:`~rag_sourcebias.pairs.data.PairChecks`.
    """
    return tuple(_reason(flag, pair, thresholds, by_chance) for flag in pair.flags)


def _reason(
    flag: str, pair: CheckedPair, thresholds: PairThresholds, by_chance: float | None
) -> Finding:
    values = pair.values
    match flag:
        case "leftover":
            return PairsCode.LEFTOVER(text=pair.leftover)
        case "language":
            return PairsCode.LANGUAGE(original=pair.languages[0], written=pair.languages[1])
        case "unrelated":
            return _unlike(values, thresholds, by_chance)
        case "truncated":
            if thresholds.end_kept is not None and values["end_kept"] < thresholds.end_kept:
                return PairsCode.CUT_OFF(end_kept=values["end_kept"])
            return PairsCode.OPEN_END()
        case "numbers":
            missing, added = pair.numbers_missing, pair.numbers_added
            return PairsCode.NUMBERS(missing=len(missing), added=len(added))
        case "names":
            missing, added = pair.names_missing, pair.names_added
            return PairsCode.NAMES(missing=len(missing), added=len(added))
        case _:
            return Finding(code=PairsCode[flag.upper()], numbers=values)


def _unlike(
    values: Mapping[str, float], thresholds: PairThresholds, by_chance: float | None
) -> Finding:
    cosine = values.get("cosine")
    if cosine is None:
        return PairsCode.UNLIKE_WORDS(overlap=values["overlap"], chance=by_chance)
    if by_chance is None or cosine > by_chance:
        return PairsCode.COSINE(cosine=cosine, threshold=thresholds.cosine)
    return PairsCode.UNLIKE_VECTORS(cosine=cosine, chance=by_chance)


# Whether the corpus is fit for an audit.


class Criterion(NamedTuple):
    """One of the three criteria of [K] §2; ``met`` is None where it was not checked."""

    name: str
    met: bool | None
    finding: Finding


def criteria(found: PairCriteria) -> tuple[Criterion, ...]:
    """Return the three criteria for one source, with what was counted."""
    return (
        Criterion("source known", found.sources_known, _sources(found)),
        Criterion("labels copied", found.labels_copied, _labels(found)),
        Criterion("one to one", found.one_to_one, _pairing(found)),
    )


def _sources(found: PairCriteria) -> Finding:
    if found.sources_known:
        return PairsCode.SOURCES_KNOWN(documents=found.n_documents)
    return PairsCode.SOURCES_UNKNOWN(untagged=found.untagged.n, documents=found.n_documents)


def _labels(found: PairCriteria) -> Finding:
    if found.labels_copied is None:
        return PairsCode.LABELS_UNCHECKED()
    if found.labels_copied:
        return PairsCode.LABELS_COPIED(labels=found.n_labels)
    return PairsCode.LABELS_DIFFER(
        labels=found.n_labels,
        missing=found.labels_missing.n,
        differ=found.labels_differ.n,
        added=found.labels_added.n,
    )


def _pairing(found: PairCriteria) -> Finding:
    if found.one_to_one:
        return PairsCode.ONE_TO_ONE(pairs=found.n_pairs)
    return PairsCode.NOT_ONE_TO_ONE(
        pairs=found.n_pairs,
        originals=found.baseline_alone.n,
        rewrites=found.other_alone.n,
        repeated=found.repeated.n,
    )


def criteria_met(sources: Sequence[SourcePairs]) -> dict[str, bool | None]:
    """Return each criterion with whether all sources meet it; None where that was not checked."""
    met: dict[str, list[bool | None]] = {}
    for part in sources:
        for criterion in criteria(part.criteria):
            met.setdefault(criterion.name, []).append(criterion.met)
    return {name: _all_met(found) for name, found in met.items()}


def _all_met(found: list[bool | None]) -> bool | None:
    if False in found:
        return False
    return None if None in found else True


def criteria_counted(sources: Sequence[SourcePairs]) -> Finding:
    """Return how many of the criteria are met."""
    met = list(criteria_met(sources).values())
    return PairsCode.CRITERIA(
        met=met.count(True), failed=met.count(False), unchecked=met.count(None)
    )


def outcome(part: SourcePairs) -> str:
    """Return the verdict on one source as a code of its own."""
    met = [criterion.met for criterion in criteria(part.criteria)]
    if part.summary.n_broken:
        return "broken_pairs"
    if False in met:
        return "criteria_not_met"
    return "not_all_checked" if None in met else "sound"


class Totals(NamedTuple):
    """Pairs of all sources."""

    pairs: int
    flagged: int
    broken: int

    @classmethod
    def of(cls, sources: Sequence[SourcePairs]) -> Totals:
        """Add up the pairs of sources."""
        return cls(
            pairs=sum(part.summary.n_pairs for part in sources),
            flagged=sum(part.summary.n_flagged for part in sources),
            broken=sum(part.summary.n_broken for part in sources),
        )


def pairs_broken(totals: Totals) -> Finding:
    """Return how many pairs are broken."""
    pairs, _, broken = totals
    if not pairs:
        return PairsCode.NO_PAIRS()
    if not broken:
        return PairsCode.NONE_BROKEN(pairs=pairs)
    return PairsCode.BROKEN(broken=broken, pairs=pairs, share=broken / pairs)


def verdict(sources: Sequence[SourcePairs]) -> Finding:
    """Return whether the corpus meets what an audit assumes, as far as that was checked."""
    met, totals = list(criteria_met(sources).values()), Totals.of(sources)
    if False in met:
        return PairsCode.UNFIT(failed=met.count(False))
    if totals.broken > MUCH * totals.pairs:
        return PairsCode.MANY_BROKEN()
    return PairsCode.UNCHECKED() if None in met else PairsCode.FIT()


def doubts(totals: Totals, tests: Sequence[SoleCorpusTest]) -> Iterator[Finding]:
    """Yield what to know before the verdict is trusted."""
    facts = totals.flagged - totals.broken
    if facts:
        yield PairsCode.FACTS(facts=facts, share=facts / totals.pairs)
    verdicts = {test.verdict for test in tests}
    if "different" in verdicts:
        yield PairsCode.HARDER()
    elif "open" in verdicts:
        yield PairsCode.UNDECIDED()


def next_step(totals: Totals, report: PairResults) -> Finding | None:
    """Return the command that follows, on the same corpus."""
    data = report.inputs
    if not data or not report.data.n_judgments or totals.broken == totals.pairs:
        return None  # nothing is left to audit, or to audit with
    if totals.broken:
        return PairsCode.NEXT_REPAIR(data=report.again)
    return PairsCode.NEXT_AUDIT(data=data)


# Whether each corpus, searched alone, is as hard as the other.


def equally_hard(tests: Sequence[SoleCorpusTest]) -> Finding:
    """Return on how many measures both corpora are equally hard; there is at least one test."""
    verdicts, n, margin = [test.verdict for test in tests], len(tests), tests[0].margin
    same, differ = verdicts.count("equivalent"), verdicts.count("different")
    if same == n:
        return PairsCode.ALONE_ALIKE(margin=margin, tests=n)
    gaps = [test.mean_baseline - test.mean_other for test in tests if test.verdict == "different"]
    if gaps and min(gaps) > 0:
        return PairsCode.ALONE_REWRITES_HARDER(tests=n, differ=differ)
    if gaps and max(gaps) < 0:
        return PairsCode.ALONE_ORIGINALS_HARDER(tests=n, differ=differ)
    if gaps:
        return PairsCode.ALONE_DIFFER(margin=margin, tests=n, same=same, differ=differ)
    return PairsCode.ALONE_SOME(margin=margin, tests=n, same=same)


def decision(test: SoleCorpusTest) -> Finding:
    """Return what one test decided."""
    if test.verdict == "equivalent":
        return PairsCode.TEST_EQUIVALENT(margin=test.margin)
    if test.verdict == "different":
        return PairsCode.TEST_DIFFERENT()
    if test.needs_queries is None:
        return PairsCode.TEST_UNDECIDED()
    return PairsCode.TEST_NEEDS()


# What a reader must know about a paired corpus before trusting an audit of it.


def warnings(sources: Sequence[SourcePairs]) -> Iterator[Finding]:
    """Yield what the criteria and counts do not say."""
    for part in sources:
        name, pairs, chance = part.source, part.summary.n_pairs, part.by_chance
        unrelated = part.summary.flagged.get("unrelated", 0)
        if chance is None and 0 < pairs < MIN_PAIRS:
            yield PairsCode.FEW_PAIRS(severity="warning", source=name, pairs=pairs)
        if chance is not None and unrelated > _MANY_UNRELATED * pairs:
            yield PairsCode.MANY_UNRELATED(
                severity="warning", source=name, unrelated=unrelated, pairs=pairs, chance=chance
            )
        if part.n_left_out:
            yield PairsCode.QUERIES_LEFT_OUT(
                severity="warning", source=name, left_out=part.n_left_out, queries=part.n_queries
            )


def failed(sources: Sequence[SourcePairs], limit: float) -> Iterator[Finding]:
    """Yield the sources with no pairs, or with a larger share of broken ones than a limit."""
    for part in sources:
        pairs, broken = part.summary.n_pairs, part.summary.n_broken
        if not pairs:
            yield PairsCode.EMPTY_SOURCE(source=part.source)
        elif part.broken_share > limit:
            yield PairsCode.ABOVE_LIMIT(source=part.source, broken=broken, pairs=pairs, limit=limit)
