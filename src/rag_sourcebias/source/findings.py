"""What a source audit can say: each sentence once, and which of them its numbers allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.finding import CORRECTIONS, Code, Finding, data_argument, short_names
from rag_sourcebias.infer.decide import SkewCode
from rag_sourcebias.source.data import SkewResults, SkewVerdict, SoleCorpusCheck, SystemSkew

_VISIBLE = 0.05  # points of Relative Δ that one decimal shows
_TINY = 1e-12  # a difference of scores that rounding makes


class SourceCode(Code, home="source"):
    """Sentences of a source audit."""

    # Verdicts, each under the name of its SkewCode, and what goes with them.
    FAVOURS_BASELINE = (
        "Favours {baseline} text over {other} text: centred Relative Δ of {measure} "
        "{delta:signed} over {n_queries:query|queries}."
    )
    FAVOURS_OTHER = (
        "Favours {other} text over {baseline} text: centred Relative Δ of {measure} "
        "{delta:signed} over {n_queries:query|queries}."
    )
    ALIKE = (
        "Treats {baseline} and {other} text alike, within ±{margin} points: centred Relative Δ of "
        "{measure} {delta:signed} over {n_queries:query|queries}."
    )
    CANNOT_TELL = (
        "Cannot tell which of {baseline} and {other} text is favoured, if either: centred Relative "
        "Δ of {measure} {delta:signed} over {n_queries:query|queries}."
    )
    REFUSED = "No verdict on {baseline} and {other} text: {refusal}."
    PUBLISHED = "The published form of Relative Δ gives {delta:signed}."
    TESTED = "Test of no skew beyond chance: p {p:p=}."
    ADJUSTED = (
        "Test of no skew beyond chance: p {p:p=}, adjusted p {p_adjusted:p=} over "
        "{n_tests:test|tests}."
    )
    NEEDED = "About {n_needed:roughly} queries are needed for a verdict."
    CONTROL = (
        "Searched alone, the two corpora differ too ({measure} {mean_baseline:score} against "
        "{mean_other:score}, p {p:p=}), so this may not be source bias alone."
    )
    REPEAT = "{repeat}: {delta:signed}."
    REPEAT_TURNS = "{repeat} the verdict is another: {delta:signed}."
    SCOPE = "The verdict rests on {measure} over {n_queries:query|queries}."
    SCOPE_CORRECTED = (
        "The verdict rests on {measure} over {n_queries:query|queries}, corrected for "
        "{n_tests:test|tests}."
    )
    FAVOURED_TEXT = "favours {source} text"
    FAVOURED = "favours {source}"
    FIGURE = "centred Δ of {measure}"
    AGAINST = "against {other}"

    # The first screen, without statistics.
    PAIRS = (
        "In {n_higher} of {n:pair|pairs}, {system:short} ranks the {higher} version above the "
        "{lower} version ({n_ties:tie|ties})."
    )
    QUERIES = (
        "In {n_higher} of {n:query|queries}, {system:short} ranks {higher} text above {lower} "
        "text ({n_ties:tie|ties})."
    )
    NOTHING_TO_COUNT = (
        "No query has relevant text of both sources, so there is nothing to count for "
        "{system:short}."
    )
    SEVERAL = (
        "Of {n:comparison|comparisons}, {baseline} text is favoured in {n_baseline}, {other} text "
        "in {n_other}, neither in {n_alike}; {n_open:is|are} open."
    )
    PLAIN_FAVOURS_BASELINE = (
        "Verdict: {system:short} favours {baseline} text, by more than chance explains."
    )
    PLAIN_FAVOURS_OTHER = (
        "Verdict: {system:short} favours {other} text, by more than chance explains."
    )
    PLAIN_ALIKE = "Verdict: {system:short} treats both alike, within the margin of this audit."
    PLAIN_CANNOT_TELL = (
        "Cannot tell whether {system:short} favours either: {n_queries:query is|queries are} too "
        "few."
    )
    PLAIN_NEEDED = (
        "Cannot tell whether {system:short} favours either: {n_queries:query is|queries are} too "
        "few; about {n_needed:roughly} are needed."
    )
    PLAIN_REFUSED = "No verdict: these data do not allow one (see “Verdicts”)."
    HARDER = (
        "Even on its own, {source} text is harder to find: this may not be a preference for the "
        "source."
    )
    HARDER_FOR_SOME = (
        "Even on its own, {source} text is harder to find in {n} of {n_all:comparison|comparisons}:"
        " there this may not be a preference for the source."
    )
    GUESSED = "Sources are a detector's guesses: the count is not corrected for wrong ones."
    TURNED = "The verdict weighs the top of each ranking and points the other way than the count."
    CONTENT = "The texts differ in content too, which may explain this."
    HIGHER = "{source} higher"
    SUBJECT = "{system} against {other}"
    TALLY = "{n_baseline} / {n_ties} / {n_other}"
    MORE_BELOW = "{unit}; {n} more below"
    SIZE = (
        "{n_queries:query|queries}, {n_judgments:judgment|judgments}, "
        "{n_documents:document|documents}, design: {design}"
    )

    # What to do next.
    NEXT_CHECK = "Do both versions say the same? `rag-sourcebias check-pairs {data}`"
    NEXT_EXPLAIN = "What differs between them? `rag-sourcebias explain {data}`"
    NEXT_REWRITE = "Rule out content: `rag-sourcebias rewrite {data} --output paired`"
    NEXT_WATCH = "Keep watching: `rag-sourcebias monitor serve retrievals.db`"
    NEXT_MORE = (
        "With more queries: `rag-sourcebias audit source --run RUN --qrels QRELS --tags TAGS`"
    )

    # What to know of a run and of the data.
    UNJUDGED = "Queries of the run without judgments: {n}. They are left out."
    TIES_AVERAGED = (
        "Queries with tied scores by rank {rank}: {n} of {n_queries}. Ties are averaged over."
    )
    TIES_BROKEN = (
        "Queries with tied scores by rank {rank}: {n} of {n_queries}. Ties are broken by document "
        "id."
    )
    SHARED = (
        "Queries share judged documents: against {other}, the standard error is {factor:2} times "
        "that of independent queries (the interval allows for it)."
    )
    APPROXIMATE = "The approximate index returned {share:percent} of the exact top {cutoff}."
    NOT_COMPUTED = "No {figure}: {refusal}."
    UNTAGGED = "Retrieved entries of documents without a source tag: {n}."
    REPEATED = "Retrieved entries that repeat a document: {n}. They are dropped."
    EMPTY = "Judged queries for which {system} returned nothing: {n}. Each scores 0 and counts."
    CORRECTED = (
        "Relative Δ is corrected for wrong tags; pictures of single queries, twins and exposure "
        "are by the tags as they are."
    )
    VERIFIED = (
        "Sources of relevant documents: {n_declared} declared, {n_detected} by a detector, "
        "{n_verified} verified by people, who found {n_wrong} of these detected wrong; the "
        "intervals allow for wrong tags among the others."
    )
    NOT_REPEATED = (
        "Not all retrievers were also measured at equal length, which encodes half of the texts "
        "again: --length-matched (length_matched=True) does so."
    )
    NOT_CUT = (
        "Vectors were given, so pairs could not be cut to equal length: what length does is seen "
        "in the length-adjusted figures only."
    )

    # Several data sets.
    COMBINED = (
        "{system}, {measure} over {n:data set|data sets}: centred Relative Δ {delta:signed} "
        "(random effects)."
    )
    NOT_COMBINED = "{system}, {measure} over {n:data set|data sets}: no common figure: {refusal}."

    FEW_STUDIES = (
        "{n:data set is|data sets are} too few to tell how much they differ; at least {n_least} "
        "are needed"
    )

    # Why there is no figure.
    NEVER_TOGETHER = (
        "no query has relevant documents of both sources, so their ranks cannot be compared; judge "
        "documents of both for the same queries (copies take the grade of their original)"
    )
    NOTHING_RELEVANT = (
        "no relevant document of either source was retrieved within the cutoff, so Relative Δ is "
        "undefined (0 / 0)"
    )
    UNINFORMATIVE = (
        "{n} {units} carry the information of only {independent}: for the others nothing relevant "
        "was found within the cutoff, or they share documents; at least {n_least} are needed, "
        "about {n_needed} {units}, or a larger cutoff"
    )
    FEW_FOR_COVARIATES = (
        "adjusting for {n_covariates:covariate|covariates} needs at least {n_needed} queries with "
        "pairs, there are {n}"
    )
    ONE_WAY = (
        "{events} of {n_pairs:pair|pairs} went one way; a logistic regression needs at least "
        "{n_least} each way"
    )
    CONSTANT_COVARIATE = (
        "covariate {column} is {value:3} for every pair, so nothing is known about wins at {at:3}"
    )
    ALL_AGREE = (
        "all {n:query agrees|queries agree} exactly, so nothing is known about how much they vary; "
        "an interval needs queries that differ"
    )
    SEPARATED = (
        "the covariates separate wins from losses completely (or are collinear), so a win rate at "
        "equal length cannot be estimated from these pairs"
    )

    # How to read the tables and pictures.
    CARDS = (
        "Centred Relative Δ with its {level:level} interval. Bars run from −{reach:whole} "
        "({other} text ranked higher, left) to +{reach:whole} ({baseline} text, right); a "
        "filled dot and * mark what is significant after correction."
    )
    BARS = "−{reach:whole} … +{reach:whole}"
    CASES = (
        "Each query adds its difference to the figure: positive where {baseline} text ranks "
        "higher. One relevant document of each source is shown, with its rank; words that the "
        "other text lacks are marked."
    )
    CUTOFFS = (
        "Each line is a {level:level} interval; filled marks are significant after correction; "
        "hollow ones are not, or were not tested. Circles lie on the {baseline} side, triangles "
        "on the other."
    )
    EVERY_QUERY = (
        "Marks below the diagonal are queries that rank {baseline} text higher, marks above it "
        "the reverse. The area is the number of queries with these scores; 0 means that no "
        "relevant text was found."
    )
    BY_CUTOFF = "Relative Δ of {measure} against {other}"
    BY_QUERY = "{measure} of each query, {system}: {baseline} against {other}"
    DIRECTION = "← {other} ranked higher | {baseline} ranked higher →"
    SCORE_OF = "{measure} of {source} text"
    HIGHER_IN = "{source} higher: {n}"
    STAR = "* adjusted p below {alpha:level} ({correction} over {n_tests:test|tests})."
    STAR_UNCORRECTED = "* p below {alpha:level}, not corrected for {n_tests:test|tests}."
    EXPLORATORY = (
        "Intervals at {level:level} are not adjusted. {measure} carries the verdict, other "
        "measures are exploratory."
    )
    CASE = "{query} ({ranks})"
    RANKS = "rank of {baseline}: {rank:whole}, of {other}: {rank_other:whole}"
    CUT = "The first {n} of {n_all:character|characters}."
    MISSING = "{measure} against {other}: {refusal}."
    REPEATED_SYSTEM = "{system} ({variant})"

    # Answers to what readers ask.
    DELTA = (
        "All sources are retrieved from one mixed corpus. The quality of the ranking is then "
        "scored twice: once counting only the relevant documents of one source, once only those "
        "of the other, each at the rank it really has. Relative Δ is the difference of the two "
        "mean scores in percent of their average. 0 means equal treatment, +200 means that only "
        "{baseline} documents were found, −200 that none of them were. Where one source has more "
        "relevant documents than the other, chance does not give 0: the centred figure subtracts "
        "what each source would score if source labels were permuted among the relevant documents "
        "of a query. With one copy of each document they are equal."
    )
    DECISION = (
        "It rests on the interval of centred Relative Δ of {measure}: inside ±{margin} points "
        "both sources are treated alike; beyond 0 one of them is favoured; otherwise these "
        "queries cannot tell. All other measures are exploratory."
    )
    SIGN = "Positive: {baseline} text is ranked higher. Negative: {other} text is ranked higher."
    NOISE = (
        "At @{cutoff} a query contributes one hit or none, so a handful of queries can move the "
        "value by tens of points. Read the interval, not the estimate, and look at the larger "
        "cutoffs: they use more of each ranking and are steadier."
    )
    COVERAGE = (
        "With {level:level} confidence each interval covers the value for all queries like these, "
        "one interval at a time: they are not widened for the number of comparisons. “Needed” "
        "estimates how many queries give a verdict four times in five, if any skew in the "
        "interval is as likely as it says; without any skew more are needed."
    )
    FAMILY = (
        "p belongs to no skew beyond chance: one minus the largest confidence level whose "
        "interval excludes 0. {n_tests:test belongs|tests belong} together: {measure} of all "
        "retrievers and sources of the mixed corpus. Repeats are corrected among themselves; "
        "other measures are exploratory and not corrected."
    )
    HOLM = (
        "Holm's correction controls the chance of even one false alarm among all of them; only an "
        "adjusted value below {alpha:level} is called significant. “Not significant” does not "
        "mean that there is no difference."
    )
    BH = (
        "Benjamini and Hochberg's correction controls the expected share of false alarms among "
        "the significant ones; only an adjusted value below {alpha:level} is called significant. "
        "“Not significant” does not mean that there is no difference."
    )
    NONE = (
        "No correction for the number of tests was asked for, so some of them fall below "
        "{alpha:level} by chance alone. The test says whether there is a difference, not how "
        "large it is."
    )

    OF_REWRITES = (
        "Each text has a twin of another source that is meant to say the same thing, so a skew is "
        "a preference for the source or its way of writing, as far as the twins really agree: the "
        "sole-corpus control and the length-matched values check that. It holds for this corpus, "
        "these queries and these generating models, and the direction can differ elsewhere."
    )
    OF_INDEPENDENT = (
        "The texts of different sources answer the same queries independently, so they differ in "
        "content and quality as well as in source. A skew shows which source this retriever ranks "
        "higher here; better or longer answers of one source would look the same."
    )
    OF_UNKNOWN = (
        "It is not known whether the texts of different sources say the same thing. A skew shows "
        "which source this retriever ranks higher here; better or longer answers of one source "
        "would look the same."
    )


# What was compared, with all that a verdict rests on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """In how many pairs of versions, or queries, each source ranks higher and neither does."""

    unit: Literal["pair", "query"]
    baseline: int = 0
    other: int = 0
    ties: int = 0

    @property
    def n(self) -> int:
        """All that were counted."""
        return self.baseline + self.other + self.ties


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One system, two sources, and what explains or weakens the verdict.

    Parameters
    ----------
    control : SoleCorpusCheck or None
        A control that fails: the sources differ even when each is searched alone.
    repeats : tuple of (SystemSkew, SkewVerdict)
        Of a system as deployed: at equal length, with exact search.
    """

    system: SystemSkew
    verdict: SkewVerdict
    tally: Tally
    control: SoleCorpusCheck | None = None
    repeats: tuple[tuple[SystemSkew, SkewVerdict], ...] = ()

    @property
    def harder(self) -> str:
        """Source that is harder to find on its own; "" where the control does not fail."""
        if self.control is None:
            return ""
        if self.control.mean_baseline < self.control.mean_other:
            return self.control.baseline
        return self.control.other

    @property
    def turned(self) -> bool:
        """Whether the verdict points the other way than the count."""
        lead = self.tally.baseline - self.tally.other
        if self.verdict.code is SkewCode.FAVOURS_BASELINE:
            return lead < 0
        return self.verdict.code is SkewCode.FAVOURS_OTHER and lead > 0


def comparisons(report: SkewResults) -> tuple[Comparison, ...]:
    """Return every system, repeats too, with every other source, in the order of the report."""
    return tuple(
        _comparison(report, system, verdict)
        for system in report.systems
        for verdict in system.verdicts
    )


def _comparison(report: SkewResults, system: SystemSkew, verdict: SkewVerdict) -> Comparison:
    repeats = tuple(
        (again, repeated)
        for again in report.systems
        if again.name == system.name and again.variant != system.variant == "mixed"
        for repeated in again.verdicts
        if repeated.other == verdict.other and repeated.code is not SkewCode.REFUSED
    )
    control = None
    if verdict.favoured and report.data.design == "rewrites":
        # only rewrites are meant to be found equally well
        control = _failed_control(report, system, verdict)
    return Comparison(
        system=system,
        verdict=verdict,
        tally=_tally(system, verdict),
        control=control,
        repeats=repeats,
    )


def _failed_control(
    report: SkewResults, system: SystemSkew, verdict: SkewVerdict
) -> SoleCorpusCheck | None:
    alpha = 1 - report.config.confidence_level
    for check in system.sole_corpus:
        same = (check.other, check.measure) == (verdict.other, verdict.measure)
        if same and check.p_value is not None and check.p_value < alpha:
            return check
    return None


def _tally(system: SystemSkew, verdict: SkewVerdict) -> Tally:
    """Count pairs of versions where there are any, else queries with texts of both sources."""
    for twin in system.twins:
        if twin.other == verdict.other and twin.n_pairs:
            return _counted("pair", 0.5 - twin.other_above)
    for chance in system.chance:
        if chance.other == verdict.other:
            row = system.scores.measures.index(verdict.measure)
            return _counted("query", chance.skew[row][chance.both])
    return Tally(unit="query")


def _counted(unit: Literal["pair", "query"], lead: FloatArray) -> Tally:
    baseline, other = int(np.sum(lead >= _TINY)), int(np.sum(lead <= -_TINY))
    return Tally(unit=unit, baseline=baseline, other=other, ties=len(lead) - baseline - other)


# Names.


REPEATS = {"length-matched": "At equal length", "exact": "With exact search"}


def others_of(report: SkewResults) -> tuple[str, ...]:
    """Return the sources compared with the baseline, in the order of the report."""
    return tuple(dict.fromkeys(v.other for system in report.systems for v in system.verdicts))


def names_of(report: SkewResults) -> dict[str, str]:
    """Return the short name of every source of the report."""
    known = [report.config.baseline_source, *others_of(report), *report.data.documents]
    return short_names(known)


def sides_of(report: SkewResults) -> tuple[str, str]:
    """Return the names of the baseline and of the other source; of several, what is any of them."""
    names, others = names_of(report), others_of(report)
    other = names[others[0]] if len(others) == 1 else "another source’s"
    return names[report.config.baseline_source], other


def label(system: SystemSkew) -> str:
    """Return the name of a system, with the variant where it is a repeat."""
    if system.variant == "mixed":
        return system.name
    return str(SourceCode.REPEATED_SYSTEM(system=system.name, variant=system.variant))


# Verdicts.


def verdict_sentences(report: SkewResults, comparison: Comparison) -> Iterator[Finding]:
    """Yield the verdict on one comparison with its numbers, and what goes with it."""
    names, verdict = names_of(report), comparison.verdict
    yield SourceCode[verdict.code.name](
        severity="verdict",
        baseline=names[verdict.baseline],
        other=names[verdict.other],
        measure=verdict.measure,
        delta=verdict.figure,
        margin=verdict.margin,
        n_queries=verdict.n_queries,
        refusal=verdict.refusal,
    )
    if verdict.code is SkewCode.REFUSED:
        return
    published = comparison.system.cell(verdict.measure, verdict.other).relative_delta
    centred = verdict.centred_delta
    if published is not None and centred is not None and abs(published - centred) >= _VISIBLE:
        yield SourceCode.PUBLISHED(delta=published)
    if verdict.code is not SkewCode.ALIKE:
        yield _tested(report, verdict)
    if verdict.code is SkewCode.CANNOT_TELL and verdict.n_needed is not None:
        yield SourceCode.NEEDED(n_needed=verdict.n_needed)
    control = comparison.control
    if control is not None:
        yield SourceCode.CONTROL(
            measure=control.measure,
            mean_baseline=control.mean_baseline,
            mean_other=control.mean_other,
            p=control.p_value,
        )
    for again, repeated in comparison.repeats:
        same = repeated.code is verdict.code
        code = SourceCode.REPEAT if same else SourceCode.REPEAT_TURNS
        yield code(repeat=REPEATS[again.variant], delta=repeated.figure)


def _tested(report: SkewResults, verdict: SkewVerdict) -> Finding:
    if verdict.n_tests == 1 or report.config.correction == "none":
        return SourceCode.TESTED(p=verdict.p_value)
    return SourceCode.ADJUSTED(
        p=verdict.p_value, p_adjusted=verdict.p_adjusted, n_tests=verdict.n_tests
    )


def headline(report: SkewResults) -> Finding:
    """Return what the verdicts rest on."""
    corrected = report.n_tests > 1 and report.config.correction != "none"
    code = SourceCode.SCOPE_CORRECTED if corrected else SourceCode.SCOPE
    return code(
        measure=report.config.primary_measure,
        n_queries=report.data.n_queries,
        n_tests=report.n_tests,
    )


# The first screen.


def answer(report: SkewResults, found: Sequence[Comparison]) -> Finding:
    """Return what was counted for the only comparison, or the verdicts on several."""
    if len(found) == 1:
        return _count(report, found[0])
    baseline, other = sides_of(report)
    codes = Counter(comparison.verdict.code for comparison in found)
    return SourceCode.SEVERAL(
        n=len(found),
        baseline=baseline,
        other=other,
        n_baseline=codes[SkewCode.FAVOURS_BASELINE],
        n_other=codes[SkewCode.FAVOURS_OTHER],
        n_alike=codes[SkewCode.ALIKE],
        n_open=codes[SkewCode.CANNOT_TELL] + codes[SkewCode.REFUSED],
    )


def _count(report: SkewResults, comparison: Comparison) -> Finding:
    names, verdict, tally = names_of(report), comparison.verdict, comparison.tally
    system = comparison.system.name
    if not tally.n:
        return SourceCode.NOTHING_TO_COUNT(system=system)
    higher, lower = names[verdict.baseline], names[verdict.other]
    if tally.other > tally.baseline:
        higher, lower = lower, higher
    code = SourceCode.PAIRS if tally.unit == "pair" else SourceCode.QUERIES
    return code(
        system=system,
        n_higher=max(tally.baseline, tally.other),
        n=tally.n,
        n_ties=tally.ties,
        higher=higher,
        lower=lower,
    )


def plain_verdict(report: SkewResults, comparison: Comparison) -> Finding:
    """Return a verdict without a measure, a test or an interval."""
    names, verdict = names_of(report), comparison.verdict
    code = SourceCode[f"PLAIN_{verdict.code.name}"]
    if verdict.code is SkewCode.CANNOT_TELL and verdict.n_needed is not None:
        code = SourceCode.PLAIN_NEEDED
    return code(
        severity="verdict",
        system=comparison.system.name,
        baseline=names[verdict.baseline],
        other=names[verdict.other],
        n_queries=verdict.n_queries,
        n_needed=verdict.n_needed,
    )


def doubts(report: SkewResults, found: Sequence[Comparison]) -> Iterator[Finding]:
    """Yield what stands against the verdicts: how tags are known, the control, the design."""
    names = names_of(report)
    if report.data.origins.keys() & {"detected", "unverified"}:
        yield SourceCode.GUESSED()
    harder = Counter(comparison.harder for comparison in found if comparison.harder)
    for source, n in sorted(harder.items()):
        code = SourceCode.HARDER if n == len(found) else SourceCode.HARDER_FOR_SOME
        yield code(source=names[source], n=n, n_all=len(found))
    if any(comparison.turned for comparison in found):
        yield SourceCode.TURNED()
    if report.data.design != "rewrites" and any(c.verdict.favoured for c in found):
        yield SourceCode.CONTENT()


def next_step(report: SkewResults, found: Sequence[Comparison]) -> Finding | None:
    """Return the command that follows from the verdicts."""
    finished = not report.data.mean_words  # rankings alone: no texts, and no data set by that name
    data = data_argument("" if finished else report.data.name)
    codes = {comparison.verdict.code for comparison in found}
    if any(comparison.control for comparison in found):
        return SourceCode.NEXT_CHECK(data=data)
    if any(comparison.verdict.favoured for comparison in found):
        if report.data.design == "rewrites":
            return SourceCode.NEXT_EXPLAIN(data=data)
        return SourceCode.NEXT_REWRITE(data=data)
    if codes == {SkewCode.ALIKE}:
        return SourceCode.NEXT_WATCH()
    if finished and SkewCode.CANNOT_TELL in codes:
        return SourceCode.NEXT_MORE()
    return None


# Notes.


def notes_of(system: SystemSkew) -> tuple[Finding, ...]:
    """Return what a reader must know of one run."""
    counts = (
        (SourceCode.UNTAGGED, system.n_untagged),
        (SourceCode.REPEATED, system.n_duplicates),
    )
    return (
        *system.notes,
        *(note for twin in system.twins for note in twin.notes),
        *(code(n=n) for code, n in counts if n),
    )


# How to read the report.


def star(report: SkewResults) -> Finding:
    """Return what a star stands for."""
    config = report.config
    code = SourceCode.STAR if config.correction != "none" else SourceCode.STAR_UNCORRECTED
    return code(
        alpha=1 - config.confidence_level,
        correction=CORRECTIONS[config.correction],
        n_tests=report.n_tests,
    )


def questions(report: SkewResults) -> tuple[tuple[str, Finding], ...]:
    """Return what readers ask, and the answers for this report."""
    config = report.config
    baseline, other = sides_of(report)
    measure, level = config.primary_measure, config.confidence_level
    corrected = SourceCode[config.correction.upper()]
    followed = SourceCode[f"OF_{report.data.design.upper()}"]
    return (
        ("What is Relative Δ?", SourceCode.DELTA(baseline=baseline)),
        (
            "How is the verdict reached?",
            SourceCode.DECISION(measure=measure, margin=config.margin),
        ),
        ("Which sign means what?", SourceCode.SIGN(baseline=baseline, other=other)),
        ("Why is the smallest cutoff so noisy?", SourceCode.NOISE(cutoff=min(config.cutoffs))),
        ("What do the intervals cover?", SourceCode.COVERAGE(level=level)),
        (
            "Which tests belong together?",
            SourceCode.FAMILY(n_tests=report.n_tests, measure=measure),
        ),
        ("What does an adjusted p-value cover?", corrected(alpha=1 - level)),
        ("What follows from a skew here?", followed()),
    )
