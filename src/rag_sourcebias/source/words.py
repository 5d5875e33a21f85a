"""What a source audit says in words: verdicts, the headline, and how to read the numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.decide import SkewCode
from rag_sourcebias.infer.sole_corpus import SoleCorpusCheck
from rag_sourcebias.report.blocks import (
    CORRECTIONS,
    VARIANTS,
    First,
    FirstRow,
    capital,
    count,
    counted,
    data_argument,
    delta,
    interval,
    join,
    level,
    number,
    opened,
    p_clause,
    roughly,
    score,
    short_names,
    shorten,
    source_name,
    split_measure,
)
from rag_sourcebias.source.data import SkewCell, SkewReport, SkewVerdict, SystemSkew

Direction = Literal["baseline", "other"]
_DIRECTIONS: dict[SkewCode, Direction] = {
    SkewCode.FAVOURS_BASELINE: "baseline",
    SkewCode.FAVOURS_OTHER: "other",
}
_CLOSE = 0.05  # points of Relative Δ that look alike with one decimal
_TINY = 1e-12  # a difference of scores that rounding makes
_MAX_NAMED, _MAX_NAME = 3, 60  # systems in a headline, characters of each
_MAX_ROWS, _MAX_ROW = 6, 40  # systems of a first screen, characters of each


def others_of(report: SkewReport) -> tuple[str, ...]:
    """Return the other sources compared, in the order of their first appearance."""
    return tuple(dict.fromkeys(c.other for s in report.systems for c in s.cells))


def names_of(report: SkewReport) -> dict[str, str]:
    """Return the short name of every source that the report mentions."""
    exposed = (e.source for s in report.systems for e in s.exposure)
    return short_names(
        [report.config.baseline_source, *others_of(report), *report.data.documents, *exposed]
    )


def label(report: SkewReport, system: SystemSkew, other: str = "") -> str:
    """Return a system's name with its variant, and the other source where there are several."""
    variant = VARIANTS.get(system.variant, system.variant)
    named = bool(other) and len(others_of(report)) > 1
    return (
        system.name
        + (f" ({variant})" if variant else "")
        + (f" against {names_of(report)[other]}" if named else "")
    )


def significant(report: SkewReport, cell: SkewCell) -> bool:
    """Whether the adjusted p-value is below 1 − the confidence level of the audit.

    Unlike :attr:`SkewCell.significant` this knows the level even where an interval was refused.
    """
    return cell.p_adjusted is not None and cell.p_adjusted < 1 - report.config.confidence_level


def shown(cell: SkewCell) -> tuple[float | None, Interval | None]:
    """Return the figure that bars and plots show: centred Relative Δ, in old reports the plain."""
    centred = cell.centred
    return (centred.value, centred.interval) if centred else (cell.relative_delta, cell.interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The wording of one system's verdict against one other source.

    Parameters
    ----------
    subject : str
        System with its variant, and the other source where there are several.
    code : SkewCode
        What can be said.
    found : SkewVerdict
    direction : {"baseline", "other"} or None
        Which source is favoured, if either.
    short : str
        A few words.
    text : str
        The finding without its subject.
    control : SoleCorpusCheck or None
        Control that fails: the sources differ even when each is searched alone.
    cells : tuple of SkewCell
        The primary measure at every cutoff, rising.
    """

    subject: str
    system: SystemSkew
    other: str
    code: SkewCode
    found: SkewVerdict
    direction: Direction | None
    short: str
    text: str
    control: SoleCorpusCheck | None
    cells: tuple[SkewCell, ...]

    @property
    def sentence(self) -> str:
        """The finding as a full sentence."""
        joint = " " if self.direction or self.code is SkewCode.ALIKE else ": "
        return f"{self.subject}{joint}{self.text}."


def verdicts(report: SkewReport) -> tuple[Verdict, ...]:
    """Return one verdict per system, variant and other source, in the order of the report."""
    return tuple(
        _worded(report, system, other)
        for system in report.systems
        for other in others_of(report)
        if any(cell.other == other for cell in system.cells)
    )


def _worded(report: SkewReport, system: SystemSkew, other: str) -> Verdict:
    names = names_of(report)
    found = next(v for v in system.verdicts if v.other == other)
    short, text = _said(report, system, found)
    control = _unequal_alone(report, system, other) if found.code in _DIRECTIONS else None
    if control is not None:
        harder = control.baseline if control.mean_baseline < control.mean_other else other
        short += f", but {names[harder]} text is harder to find even on its own"
        text += (
            f"; searched alone, the two corpora differ too ({control.measure} "
            f"{score(control.mean_baseline)} against {score(control.mean_other)}, "
            f"{p_clause(control.p_value)}), so this may not be source bias alone"
        )
    leading = split_measure(report.config.primary_measure)[0]
    chosen = (
        c for c in system.cells if c.other == other and split_measure(c.measure)[0] == leading
    )
    return Verdict(
        subject=label(report, system) + f" (against {names[other]})" * (len(others_of(report)) > 1),
        system=system,
        other=other,
        code=found.code,
        found=found,
        direction=_DIRECTIONS.get(found.code),
        short=short,
        text=text,
        control=control,
        cells=tuple(sorted(chosen, key=lambda c: split_measure(c.measure)[1] or 0)),
    )


def _said(report: SkewReport, system: SystemSkew, found: SkewVerdict) -> tuple[str, str]:
    """Return a verdict in a few words and with its numbers."""
    if found.code is SkewCode.REFUSED:
        return "no verdict", f"no verdict: {(found.refusal or '').rstrip('.')}"
    value, centred = system.cell(found.measure, found.other).relative_delta, found.centred_delta
    numbers = f"centred Relative Δ of {found.measure} {delta(centred)} {interval(found.interval)}"
    if value is not None and centred is not None and abs(value - centred) >= _CLOSE:
        numbers += f" (published form {delta(value)})"
    queries, margin = f"{count(found.n_queries)} queries", found.margin
    if found.code is SkewCode.ALIKE:
        return f"treats both alike within ±{number(margin, digits=0)}", (
            f"treats both sources alike within ±{number(margin)} points: {numbers}; {queries}"
        )
    tested = p_clause(found.p_value)
    if found.n_tests > 1 and report.config.correction != "none":
        tested += f", {p_clause(found.p_adjusted, name='adjusted p')} over {found.n_tests} tests"
    short = "cannot tell"
    if found.code is SkewCode.CANNOT_TELL:
        if found.n_needed is not None:
            queries += f", about {roughly(found.n_needed)} are needed for a verdict"
    else:
        winner = found.baseline if _DIRECTIONS[found.code] == "baseline" else found.other
        short = f"favours {names_of(report)[winner]} text"
    return short, f"{short}: {numbers}, {tested}; {queries}"


def _unequal_alone(report: SkewReport, system: SystemSkew, other: str) -> SoleCorpusCheck | None:
    """Return the control of the primary measure if it fails.

    Only rewrites are meant to be found equally well: for other designs it says nothing new. A
    variant without checks has those of its system.
    """
    if report.data.design != "rewrites":
        return None
    alpha, primary = 1 - report.config.confidence_level, report.config.primary_measure
    same = (s.sole_corpus for s in report.systems if s.name == system.name)
    checks = system.sole_corpus or next(filter(None, same), ())
    own = (c for c in checks if (c.other, c.measure) == (other, primary))
    return next((c for c in own if c.p_value is not None and c.p_value < alpha), None)


def headline(report: SkewReport) -> str:
    """Return what a reader in a hurry should take away, no more certain than it is.

    Only systems as deployed are counted; variants explain them.
    """
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts(report):
        if verdict.system.variant == "mixed":
            groups.setdefault(verdict.short, []).append(verdict)
    if not groups:
        return "No two sources were compared."
    corrected = report.n_tests > 1 and report.config.correction != "none"
    scope = f" (corrected over {report.n_tests:,} tests)" * corrected
    return (
        f"At {report.config.primary_measure} over {count(report.data.n_queries)} queries{scope}: "
        f"{'; '.join(_clause(report, group) for group in groups.values())}."
    )


def _clause(report: SkewReport, group: Sequence[Verdict]) -> str:
    first, one = group[0], len(group) == 1
    names = [shorten(v.subject, _MAX_NAME) for v in group]
    who = join(names) if len(names) <= _MAX_NAMED else f"{len(names)} systems"
    match first.code:
        case SkewCode.CANNOT_TELL:
            needed = [v.found.n_needed for v in group if v.found.n_needed is not None]
            tail = f" (about {roughly(max(needed))} queries are needed)" if needed else ""
            return f"for {who} the data cannot tell{tail}"
        case SkewCode.REFUSED:
            return f"for {who} there is no verdict"
        case SkewCode.ALIKE:
            return (
                f"{who} treat{'s' * one} both sources alike within "
                f"±{number(report.config.margin)} points"
            )
        case _:
            return f"{who} {first.short if one else first.short.replace('favours', 'favour', 1)}"


# The first screen: counts, and words that follow the verdict's code


@dataclass(frozen=True, slots=True)
class _Tally:
    """In how many pairs (or queries) each source ranks higher, and in how many neither does."""

    baseline: int
    other: int
    ties: int
    noun: str

    @property
    def n(self) -> int:
        return self.baseline + self.other + self.ties


def _tally(verdict: Verdict) -> _Tally:
    """Count pairs of versions where there are any, else queries with texts of both sources."""
    system = verdict.system
    twin = next((t for t in system.twins if t.other == verdict.other and t.n_pairs), None)
    if twin is not None:
        lead, noun = 0.5 - twin.other_above, "pair"
    else:
        measure, noun = verdict.cells[-1].measure, "query"
        chance = next((c for c in system.chance if c.other == verdict.other), None)
        if chance is None:
            return _Tally(0, 0, 0, noun)
        lead = chance.skew[system.scores.measures.index(measure)][chance.both]
    tied = np.abs(lead) < _TINY
    baseline = int(np.sum((lead > 0) & ~tied))
    return _Tally(baseline, len(lead) - baseline - int(tied.sum()), int(tied.sum()), noun)


def first(report: SkewReport) -> First:
    """Return the first screen: counts, the verdict, and what to do next."""
    found = tuple(v for v in verdicts(report) if v.system.variant == "mixed" and v.cells)
    if not found:
        return First(answer="No two sources were compared.")
    tallies = [_tally(verdict) for verdict in found]
    doubts, (why, command) = _doubts(report, found, tallies), _next(report, found)
    if len(found) == 1:
        verdict, tally = found[0], tallies[0]
        even = "even" if verdict.code is SkewCode.ALIKE else ""
        return First(
            answer=_counted(report, verdict, tally),
            verdict=_plain_verdict(report, verdict),
            standing=verdict.direction or even,
            doubts=doubts,
            rows=(FirstRow(name="", parts=_parts(report, found, tally)),),
            why=why,
            command=command,
        )
    rows = tuple(
        FirstRow(
            name=shorten(verdict.subject, _MAX_ROW),
            parts=_parts(report, found, tally),
            text=" / ".join(map(count, (tally.baseline, tally.ties, tally.other))),
        )
        for verdict, tally in zip(found, tallies, strict=True)
    )
    nouns = {tally.noun for tally in tallies}
    unit = "pairs or queries"
    if len(nouns) == 1:
        unit = "pairs of versions" if nouns == {"pair"} else "queries"
    hidden = len(rows) - _MAX_ROWS
    return First(
        answer=_grouped(report, found),
        doubts=doubts,
        caption=f"Of the {unit}" + (f"; {hidden} more below" if hidden > 0 else ""),
        rows=rows[:_MAX_ROWS],
        why=why,
        command=command,
    )


def _parts(
    report: SkewReport, found: Sequence[Verdict], tally: _Tally
) -> tuple[tuple[str, float, str], ...]:
    """Return how often each source ranks higher, with its name and colour."""
    names = names_of(report)
    others = {verdict.other for verdict in found}
    rival = names[found[0].other] if len(others) == 1 else "the other"
    what = "version" if tally.noun == "pair" else "text"
    return (
        (f"{names[report.config.baseline_source]} {what} higher", tally.baseline, "baseline"),
        ("tie", tally.ties, "even"),
        (f"{rival} {what} higher", tally.other, "other"),
    )


def _counted(report: SkewReport, verdict: Verdict, tally: _Tally) -> str:
    """Say in how many pairs or queries the source that is more often ahead ranks higher."""
    names, who = names_of(report), shorten(verdict.system.name, _MAX_NAME)
    sides = [names[report.config.baseline_source], names[verdict.other]]
    if not tally.n:
        return f"{who} found no relevant text of either source."
    ahead = tally.baseline
    if tally.other > tally.baseline:
        sides, ahead = sides[::-1], tally.other
    higher, lower = sides
    the, what = ("the ", "version") if tally.noun == "pair" else ("", "text")
    if {"detected", "unverified"} & set(report.data.origins):  # a count is not corrected for errors
        said = f"{who} ranks {the}{what} tagged {higher} above {the}{what} tagged {lower}"
    else:
        said = f"{who} ranks {the}{higher} {what} above {the}{lower} {what}"
    ties = f" ({count(tally.ties)} {'is a tie' if tally.ties == 1 else 'are ties'})" * bool(
        tally.ties
    )
    nouns = counted(tally.n, tally.noun, {"query": "queries"}.get(tally.noun, ""))
    return f"In {count(ahead)} of {nouns}, {said}{ties}."


def _plain_verdict(report: SkewReport, verdict: Verdict) -> str:
    """Return the verdict of one system without a measure, a test or an interval."""
    names, who = names_of(report), shorten(verdict.system.name, _MAX_NAME)
    match verdict.code:
        case SkewCode.ALIKE:
            return f"Verdict: {who} treats both alike, within the margin of this audit."
        case SkewCode.CANNOT_TELL:
            needed = verdict.found.n_needed
            more = f"; about {roughly(needed)} are needed" if needed else ""
            queries = counted(verdict.found.n_queries, "query", "queries")
            return f"Cannot tell whether {who} favours either: {queries} are too few{more}."
        case SkewCode.REFUSED:
            return "No verdict: these data do not allow one (see “Verdicts”)."
    winner = report.config.baseline_source if verdict.direction == "baseline" else verdict.other
    return f"Verdict: {who} favours {names[winner]} text, by more than chance explains."


def _grouped(report: SkewReport, found: Sequence[Verdict]) -> str:
    """Say of several systems which favour which source, which neither, and which are open."""
    groups: dict[str, list[str]] = {}
    names = names_of(report)
    for v in found:
        winner = report.config.baseline_source if v.direction == "baseline" else v.other
        said = {
            SkewCode.ALIKE: "{} treat{s} both sources alike, within the margin of this audit",
            SkewCode.CANNOT_TELL: "for {} there are too few queries to tell",
            SkewCode.REFUSED: "for {} there is no verdict",
        }.get(v.code, f"{{}} favour{{s}} {names[winner]} text")
        groups.setdefault(said, []).append(shorten(v.subject, _MAX_ROW))
    clauses = [
        said.format(
            join(who) if len(who) <= _MAX_NAMED else f"{len(who)} of {len(found)} systems",
            s="s" * (len(who) == 1),
        )
        for said, who in groups.items()
    ]
    return f"{opened('; '.join(clauses))}."


def _doubts(
    report: SkewReport, found: Sequence[Verdict], tallies: Sequence[_Tally]
) -> tuple[str, ...]:
    """Return what stands against the verdict: the control, the count, the design."""
    names = names_of(report)
    told: list[str] = []
    harder: dict[str, list[str]] = {}
    for verdict in found:
        control = verdict.control
        if control is not None:
            first_is_harder = control.mean_baseline < control.mean_other
            name = names[control.baseline if first_is_harder else control.other]
            harder.setdefault(name, []).append(shorten(verdict.subject, _MAX_ROW))
    for name, who in sorted(harder.items()):
        some = ""
        if len(who) < len(found):
            many = len(who) > _MAX_NAMED
            some = f"for {len(who)} of {len(found)} systems " if many else f"for {join(who)} "
        told.append(
            f"{name} text is harder {some}to find even on its own: this may not be a preference "
            "for the source."
        )
    turned = any(
        v.direction and (t.baseline - t.other) * {"baseline": 1, "other": -1}[v.direction] < 0
        for v, t in zip(found, tallies, strict=True)
    )
    if turned:
        told.append(
            "The verdict weighs the top of each ranking and points the other way than the count."
        )
    if any(v.direction for v in found) and report.data.design != "rewrites":
        told.append("The texts differ in content too, which may explain this.")
    return tuple(capital(text) for text in told)


def _next(report: SkewReport, found: Sequence[Verdict]) -> tuple[str, str]:
    """Return why and which command comes next."""
    finished = not report.data.mean_words  # rankings alone: no texts, and no data set by that name
    data = data_argument("" if finished else report.data.name)
    codes = {v.code for v in found}
    if any(v.control for v in found):
        return "Do both versions say the same?", f"rag-sourcebias check-pairs {data}"
    if codes & set(_DIRECTIONS):
        if report.data.design == "rewrites":
            return "What differs between them?", f"rag-sourcebias explain {data}"
        return "Rule out content:", f"rag-sourcebias rewrite {data} --output paired"
    if codes == {SkewCode.ALIKE}:
        return "Keep watching:", "rag-sourcebias monitor serve retrievals.db"
    if finished and report.data.name:
        command = "rag-sourcebias audit source --run RUN --qrels QRELS --tags TAGS"
        return "With more queries:", command
    return "", ""


def star_note(report: SkewReport) -> str:
    """Return the key below the table of all numbers."""
    config, tests = report.config, counted(report.n_tests, "test")
    threshold = f"{1 - config.confidence_level:.3g}"
    rule = f"* p below {threshold}, not corrected for {tests}"
    if config.correction != "none":
        rule = f"* adjusted p below {threshold} ({CORRECTIONS[config.correction]} over {tests})"
        if any(s.variant != "mixed" for s in report.systems):
            rule += "; exact-search and length-matched repeats are corrected on their own"
    return (
        f"Scores ×100. {rule}. Intervals at {level(config.confidence_level)} are not adjusted. "
        f"{config.primary_measure} carries the verdict, other measures are exploratory. Centred Δ: "
        "beyond what permuted source labels give. Needed: queries with which a verdict is reached "
        "four times in five."
    )


def how_to_read(report: SkewReport) -> tuple[tuple[str, str], ...]:
    """Return (question, answer) pairs for this report."""
    config, names, others = report.config, names_of(report), others_of(report)
    base = names[config.baseline_source]
    other = names[others[0]] if len(others) == 1 else "the other source's"
    first = min(config.cutoffs)
    return (
        (
            "What is Relative Δ?",
            "All sources are retrieved from one mixed corpus. The quality of the ranking is then "
            "scored twice: once counting only the relevant documents of one source, once only "
            "those of the other, each at the rank it really has. Relative Δ is the difference of "
            "the two mean scores in percent of their average. 0 means equal treatment, +200 means "
            f"that only {base} documents were found, −200 that none of them were. Where one source "
            "has more relevant documents than the other, chance does not give 0: the centred "
            "figure subtracts what each source would score if source labels were permuted among "
            "the relevant documents of a query. With one copy of each document they are equal.",
        ),
        (
            "How is the verdict reached?",
            f"It rests on the interval of centred Relative Δ of {config.primary_measure}: inside "
            f"±{number(config.margin)} points both sources are treated alike; beyond 0 one of them "
            "is favoured; otherwise these queries cannot tell. All other measures are exploratory.",
        ),
        (
            "Which sign means what?",
            f"Positive: {base} text is ranked higher. Negative: {other} text is ranked higher. "
            f"Sources here: {', '.join(map(source_name, names))}.",
        ),
        (
            f"Why is @{first} so noisy?",
            f"At @{first} a query contributes one hit or none, so a handful of queries can move "
            "the value by tens of points. Read the interval, not the estimate, and look at the "
            "larger cutoffs: they use more of each ranking and are steadier.",
        ),
        (
            "What do the intervals cover?",
            f"With {level(config.confidence_level)} confidence each interval covers the value for "
            "all queries like these, one interval at a time: they are not widened for the number "
            "of comparisons. “Needed” estimates how many queries give a verdict four times in "
            "five, if any skew in the interval is as likely as it says; without any skew more are "
            "needed.",
        ),
        ("What does the adjusted p-value cover?", _adjusted(report)),
        ("What follows from a skew here?", _SKEW.get(report.data.design, _SKEW["unknown"])),
    )


def _adjusted(report: SkewReport) -> str:
    threshold = f"{1 - report.config.confidence_level:.3g}"
    correction = report.config.correction
    rule = (
        "No correction for the number of tests was asked for, so some of them fall below "
        f"{threshold} by chance alone. The test says whether there is a difference, not how "
        "large it is."
        if correction == "none"
        else f"The adjusted value ({CORRECTIONS[correction]}) controls {_CONTROLLED[correction]}; "
        f"only an adjusted value below {threshold} is called significant. “Not significant” does "
        "not mean that there is no difference."
    )
    return (
        "p belongs to no skew beyond chance: one minus the largest confidence level whose "
        f"interval excludes 0. {counted(report.n_tests, 'test')} belong together: "
        f"{report.family.rstrip('.')}. {rule}"
    )


_CONTROLLED = {
    "holm": "the chance of even one false alarm among all of them",
    "bh": "the expected share of false alarms among the significant ones",
}
_NO_BIAS = (
    " A skew shows which source this retriever ranks higher here. It is not by itself evidence of "
    "a bias: better or longer answers of one source would look the same."
)
_SKEW = {
    "rewrites": "Each text has a twin of another source that is meant to say the same thing, so a "
    "skew is a preference for the source or its way of writing, as far as the twins really agree: "
    "the sole-corpus control and the length-matched values check that. It holds for this corpus, "
    "these queries and these generating models, and the direction can differ elsewhere.",
    "independent": "The texts of different sources answer the same queries independently, so they "
    f"differ in content and quality as well as in source.{_NO_BIAS}",
    "unknown": "It is not known whether the texts of different sources say the same thing."
    f"{_NO_BIAS}",
}
