"""What is concluded of every changed system on every data set, and the sentences that say so."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from rag_sourcebias.core.values import Interval
from rag_sourcebias.debias.data import (
    QUALITIES,
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasReport,
    DebiasSearch,
    QualityChange,
    SkewChange,
)
from rag_sourcebias.report.blocks import (
    First,
    FirstRow,
    capital,
    count,
    counted,
    data_argument,
    delta,
    estimate,
    join,
    number,
    p_clause,
    short_names,
    shorten,
    source_name,
)

SkewKind: TypeAlias = Literal["reached", "uncertain", "close", "missed", "overcorrected", "unknown"]
QualityKind: TypeAlias = Literal["kept", "open", "lost", "unknown"]
Role: TypeAlias = Literal["fitted", "overlap", "held out", "transfer", "unknown"]
WIDE = 3.0
"""Half widths of more than this many tolerances say little."""
_NAMED = 3  # data sets and systems that a sentence names
_LONGEST = 60  # characters of a name


# How data sets, qualities and weights are called, and how their numbers are written


def called(name: str) -> str:
    """Return a name for use within a sentence, in quotes where it is more than one word."""
    text = shorten(name, _LONGEST)
    return f"“{text}”" if any(c in " ,;:" for c in text) else text


def data_name(report: DebiasReport, dataset: DebiasDataset) -> str:
    """Return the name of a data set, with the source compared where the name alone is ambiguous."""
    name = dataset.data.name or "unnamed data"
    if sum(d.data.name == dataset.data.name for d in report.datasets) < 2:
        return name
    return f"{name}, {source_name(dataset.other)}"


def quality_names(report: DebiasReport) -> dict[str, str]:
    """Return the qualities in words: ``human-only``, ``LLM-only``, ``mixed``."""
    base = report.config.baseline_source
    # Sources differ between data sets; the section of each names its own.
    human_only = f"{short_names((base, 'llm'))[base]}-only"
    return dict(zip(QUALITIES, (human_only, "LLM-only", "mixed"), strict=True))


delta_ends = partial(estimate, signed=True)
"""Return Relative Δ with its interval, such as ``+1.1 [−6.2, 8.0]``."""


def percent(value: float | None) -> str:
    """Return a change in percent, signed, one decimal."""
    return "undefined" if value is None else f"{number(value, signed=True)}%"


def change_ends(found: QualityChange) -> tuple[float, float] | None:
    """Return the interval of a change in percent of the mean before, which is taken as known."""
    if found.difference is None or found.before == 0:
        return None
    return 100 * found.difference.lower / found.before, 100 * found.difference.upper / found.before


def percent_ends(found: QualityChange) -> str:
    """Return a change of quality in percent with its interval."""
    ends = change_ends(found)
    if ends is None:
        return percent(found.relative)
    return f"{percent(found.relative)} [{number(ends[0])}, {number(ends[1])}]"


def loss(share: float) -> str:
    """Return a margin such as ``1%`` or ``0.5%``."""
    return f"{100 * share:.6g}%"


def weight_text(weight: float) -> str:
    """Return a weight as short as it can be written: ``0``, ``0.01``, ``1e−5``."""
    return f"{weight:g}".replace("e-0", "e-").replace("-", "\u2212") if weight else "0"


def _target(config: DebiasConfig) -> str:
    return number(config.target, digits=0 if config.target % 1 == 0 else 1, signed=True)


def criteria(report: DebiasReport) -> str:
    """Return what a system has to do to meet all criteria."""
    c, names, to = report.config, quality_names(report), _target(report.config)
    return (
        f"Relative Δ of NDCG@{c.skew_cutoff} within {c.tolerance:g} points of {to} and its "
        f"interval covers {to}; {names['human-only']} and {names['llm-only']} "
        f"NDCG@{c.quality_cutoff} fall by at most {loss(c.relative_margin)}, mixed "
        f"NDCG@{c.quality_cutoff} does not fall"
    )


# Verdicts


def alpha(report: DebiasReport) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # Rounded, so that 0.05 is not below 1 − 0.95.
    return round(1 - report.config.confidence_level, 12)


def significant(report: DebiasReport, skew: SkewChange) -> bool:
    """Whether Relative Δ changed, after correction where there is one."""
    p = skew.p_value if skew.p_adjusted is None else skew.p_adjusted
    return p is not None and p < alpha(report)


def skew_kind(config: DebiasConfig, skew: SkewChange) -> SkewKind:
    """Return what Relative Δ after the change says.

    ``"close"`` lies within the tolerance with an interval that excludes the target,
    ``"uncertain"`` within it with an interval so wide that much else is possible.
    """
    now = skew.after
    if now is None:
        return "unknown"
    left = now.estimate - config.target
    if abs(left) < config.tolerance:
        if now.excludes(config.target):
            return "close"
        return "uncertain" if now.half_width > WIDE * config.tolerance else "reached"
    if skew.before is not None and (skew.before.estimate - config.target) * left < 0:
        return "overcorrected"
    return "missed"


def quality_kind(config: DebiasConfig, change: QualityChange) -> QualityKind:
    """Return whether a loss of the margin or more is excluded, possible, shown or not tested."""
    if change.test is None:
        return "unknown"
    if change.test.passed:
        return "kept"
    shown = (
        change.difference is not None
        and change.difference.upper < -config.relative_margin * change.before
    )
    return "lost" if shown else "open"


def _falls(config: DebiasConfig, change: QualityChange) -> bool:
    """Whether a quality falls by more than the margin by its estimate, the mixed one at all."""
    # In the decimals that are shown: a loss that reads 0.0% is none.
    least = 0.0 if change.quality == "mixed" else -100 * config.relative_margin
    return change.relative is None or round(change.relative, 1) < least


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasVerdict:
    """One changed system on one data set.

    Parameters
    ----------
    method : DebiasMethod or None
        What was done to the system, None where nobody said.
    role : {"fitted", "overlap", "held out", "transfer", "unknown"}
        What the data set is to the method: the one it was fitted on, one that shares pairs with
        it, another split of it without a pair in common, new, or not known.
    skew, kind
        Relative Δ at the cutoff at which it is judged, and what it says.
    quality
        Qualities at the cutoff at which they are judged, each with what its test says.
    met : bool
        Whether every criterion holds by the estimates, the interval of the skew included.
    proven : bool
        Whether in addition the interval is narrow and every loss of the margin is excluded.
    settled : bool
        Whether Relative Δ was within the tolerance before.
    away, worse : bool
        Whether Relative Δ lies further from the target than before, and significantly so.
    """

    report: DebiasReport
    dataset: DebiasDataset
    outcome: DebiasOutcome
    system: str
    on: str
    method: DebiasMethod | None
    role: Role
    skew: SkewChange
    kind: SkewKind
    quality: tuple[tuple[QualityChange, QualityKind], ...]
    met: bool
    proven: bool
    settled: bool
    away: bool
    worse: bool

    @property
    def made_worse(self) -> bool:
        """Whether more skew, or a loss of quality beyond the margin, is shown."""
        return self.worse or any(kind == "lost" for _, kind in self.quality)

    @property
    def worst(self) -> QualityChange | None:
        """The quality that fell most or rose least, None where none is known."""
        known = [change for change, _ in self.quality if change.relative is not None]
        return min(known, key=lambda change: change.relative or 0.0, default=None)


def _verdict(report: DebiasReport, dataset: DebiasDataset, outcome: DebiasOutcome) -> DebiasVerdict:
    c, skew = report.config, outcome.skew_at(report.config.skew_cutoff)
    method = next((m for m in report.methods if m.name == outcome.name), None)
    kind = skew_kind(c, skew)
    quality = tuple(
        (change, quality_kind(c, change))
        for change in outcome.quality
        if change.cutoff == c.quality_cutoff
    )
    held = bool(quality) and not any(_falls(c, change) for change, _ in quality)
    met = held and kind in ("reached", "uncertain")
    before, after = (
        None if found is None else abs(found.estimate - c.target)
        for found in (skew.before, skew.after)
    )
    away = before is not None and after is not None and after > before
    return DebiasVerdict(
        report=report,
        dataset=dataset,
        outcome=outcome,
        system=outcome.name,
        on=data_name(report, dataset),
        method=method,
        role=_role(method, dataset, outcome),
        skew=skew,
        kind=kind,
        quality=quality,
        met=met,
        proven=met and kind == "reached" and all(kept == "kept" for _, kept in quality),
        settled=before is not None and before < c.tolerance,
        away=away,
        worse=away and significant(report, skew),
    )


def _role(method: DebiasMethod | None, dataset: DebiasDataset, outcome: DebiasOutcome) -> Role:
    seen = bool(outcome.n_seen)
    if method is None or not method.fitted_on:
        return "overlap" if seen else "unknown"
    if method.fitted_on == dataset.data.name:
        source = method.settings.get("source", "")
        # Fitted on the same data, but on the texts of another generating model.
        other_model = source.startswith("llm:") and source != dataset.other
        return "transfer" if other_model and not seen else "fitted"
    if seen:
        return "overlap"
    # The name of data without its split.
    fitted, judged = (name.partition("/")[0] for name in (method.fitted_on, dataset.data.name))
    return "held out" if fitted == judged else "transfer"


def verdicts(report: DebiasReport) -> tuple[DebiasVerdict, ...]:
    """Return a verdict for every changed system on every data set.

    By system, those with a described method first, then in the order of the data sets.
    """
    found = [_verdict(report, d, outcome) for d in report.datasets for outcome in d.outcomes[1:]]
    order = list(dict.fromkeys([*(m.name for m in report.methods), *(v.system for v in found)]))
    return tuple(sorted(found, key=lambda v: order.index(v.system)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """One changed system over all data sets.

    Parameters
    ----------
    met : tuple of DebiasVerdict
        Where it meets all criteria.
    n_proven : int
        On how many data sets that is beyond doubt.
    distance : float
        Mean abs(Relative Δ - target) after the change; infinite where nothing was measured.
    """

    system: str
    verdicts: tuple[DebiasVerdict, ...]
    met: tuple[DebiasVerdict, ...]
    n_proven: int
    distance: float


def standings(report: DebiasReport) -> tuple[Standing, ...]:
    """Return every changed system, the best first.

    Best is who meets all criteria on most data sets, then who does so beyond doubt on most, then
    who comes nearest to the target.
    """
    found, every, target = [], verdicts(report), report.config.target
    for name in dict.fromkeys(v.system for v in every):
        of = tuple(v for v in every if v.system == name)
        left = [abs(now.estimate - target) for v in of if (now := v.skew.after) is not None]
        found.append(
            Standing(
                system=name,
                verdicts=of,
                met=tuple(v for v in of if v.met),
                n_proven=sum(v.proven for v in of),
                distance=sum(left) / len(left) if left else math.inf,
            )
        )
    return tuple(sorted(found, key=lambda s: (-len(s.met), -s.n_proven, s.distance)))


# Sentences about one changed system on one data set


def short(verdict: DebiasVerdict) -> str:
    """Return the verdict in a few words."""
    skew = {
        "reached": "target reached",
        "uncertain": "target reached, but uncertain",
        "close": "close, a rest is measurable",
        "missed": "further off than before" if verdict.worse else "target not reached",
        "overcorrected": "over-corrected",
        "unknown": "cannot be judged",
    }[verdict.kind]
    report, quality = verdict.report, verdict.quality
    names, kinds = quality_names(report), {kind for _, kind in quality}
    lost = [names[change.quality] for change, kind in quality if kind == "lost"]
    fallen = [
        names[change.quality]
        for change, kind in quality
        if kind != "unknown" and _falls(report.config, change)
    ]
    which = "" if len(lost) == len(quality) else f"{join(lost)} "
    told = (
        (not quality, ""),
        (lost, f"; {which}quality lost"),
        (fallen, f"; {join(fallen)} quality falls"),
        (kinds == {"kept"}, "; quality kept"),
        ("unknown" in kinds, "; quality not tested"),
        (True, "; loss of quality not excluded"),
    )
    return skew + next(text for applies, text in told if applies)


def verdict_text(verdict: DebiasVerdict) -> str:
    """Return everything about one system on one data set, without the names of the two."""
    return f"{skew_sentence(verdict)} {quality_sentence(verdict)} {role_sentence(verdict)}"


def skew_sentence(verdict: DebiasVerdict) -> str:
    """Return what happened to Relative Δ and whether that reaches the target."""
    skew, change = verdict.skew, ""
    name = f"Relative Δ of NDCG@{skew.cutoff}"
    if skew.after is None:
        return f"{name} has no interval after the change ({skew.refusal or 'not measured'})."
    went = (
        f"is {delta_ends(skew.after)}; what it was before is not known"
        if skew.before is None
        else f"goes from {delta_ends(skew.before)} to {delta_ends(skew.after)}"
    )
    if skew.change is not None:
        p, of = (skew.p_value, "p") if skew.p_adjusted is None else (skew.p_adjusted, "adjusted p")
        sure = "" if significant(verdict.report, skew) else ", not significant"
        tested = "" if p is None else f", {p_clause(p, name=of)}{sure}"
        change = f" (change {delta_ends(skew.change)}{tested})"
    return f"{name} {went}{change}: {_reach(verdict, skew.after)}."


def _reach(verdict: DebiasVerdict, now: Interval) -> str:
    c, to = verdict.report.config, _target(verdict.report.config)
    aim, covered = f"{to} ± {c.tolerance:g}", not now.excludes(c.target)
    if verdict.kind == "reached":
        kept = "it was and stays within" if verdict.settled else "it reaches"
        return f"{kept} {aim}, and the interval covers {to}"
    if verdict.kind == "uncertain":
        wanted = WIDE * c.tolerance
        needed = math.ceil(now.n_labeled * (now.half_width / wanted) ** 2)
        return (
            f"the estimate {'was and stays' if verdict.settled else 'is'} within {aim}, but an "
            f"interval of ±{number(now.half_width)} points leaves room for much else; about "
            f"{count(needed)} queries instead of {count(now.n_labeled)} would narrow it to "
            f"±{wanted:g}"
        )
    if verdict.kind == "close":
        return f"within {aim}, though the interval excludes {to}: a rest is left"
    if verdict.kind == "overcorrected":
        winner = source_name(c.baseline_source if now.estimate > 0 else verdict.dataset.other)
        side = "" if c.target else f", where {winner} text ranks higher"
        further = ", further off than before" if verdict.away else ""
        rest = f"; {to} is still within the interval" if covered else further
        return f"it goes past {aim} to the other side{side}{rest}"
    text = f"further from {to} than before" if verdict.away else f"it misses {aim}"
    if verdict.settled:
        text = f"it leaves {aim}, where it was before"
    return f"{text}, though {to} is within the interval" if covered else text


def quality_sentence(verdict: DebiasVerdict) -> str:
    """Return what each quality did, and whether a loss of the margin is excluded."""
    quality, c = verdict.quality, verdict.report.config
    if not quality:
        return "Quality was not measured."
    named = [
        (quality_names(verdict.report)[change.quality], change, kind) for change, kind in quality
    ]
    kept, lost = ([n for n, _, kind in named if kind == of] for of in ("kept", "lost"))
    which = join(kept) or "none"
    if len(kept) == len(quality):
        which = "all three" if len(quality) == 3 else "each"
    parts = [
        f"NDCG@{c.quality_cutoff} changes by "
        + join([f"{name} {percent(change.relative)}" for name, change, _ in named]),
        f"a loss of {loss(c.relative_margin)} or more is excluded for {which}",
        *(_not_kept(name, change) for name, change, kind in named if kind in ("open", "unknown")),
    ]
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        parts.append(f"{join(lost)} {verb} shown to lose more than that")
    return f"{'; '.join(parts)}."


def _not_kept(name: str, change: QualityChange) -> str:
    test = change.test
    if test is None:
        return f"{name} was not tested ({change.refusal or 'no reason given'})"
    text = f"{name} may have lost up to {number(max(-test.lower, 0.0))}%"
    if test.n_needed is None or test.n_needed <= test.n_queries:
        return text
    return (
        f"{text} (about {count(test.n_needed)} queries instead of {count(test.n_queries)} could "
        "settle it)"
    )


def role_sentence(verdict: DebiasVerdict) -> str:
    """Return whether the data are new to the method."""
    seen, method = verdict.outcome.n_seen, verdict.method
    fitted_on = "" if method is None else method.fitted_on
    other = "other generating models" if fitted_on == verdict.dataset.data.name else fitted_on
    overlap = (
        f"{count(seen)} of {count(verdict.dataset.n_pairs)} judged pairs were seen in fitting, so "
        "that part of the effect may be memory"
    )
    rest = f"; {overlap}" if seen else ", though on none of the judged pairs"
    return {
        "fitted": f"The method was fitted on these data{rest}.",
        "transfer": f"A transfer test: the method was fitted on {other}.",
        "held out": f"None of its judged pairs was seen in fitting, on {fitted_on}.",
        "overlap": f"{overlap}.",
        "unknown": "It is not known what the method was fitted on.",
    }[verdict.role]


# Sentences about one changed system on all data sets


def _where(found: Sequence[DebiasVerdict]) -> str:
    if len(found) > _NAMED:
        return f"{count(len(found))} of {count(len(found[0].report.datasets))} data sets"
    return join([called(v.on) for v in found])


def _doubts(found: Sequence[DebiasVerdict]) -> str:
    wide = any(v.kind == "uncertain" for v in found)
    possible = any(kind != "kept" for v in found for _, kind in v.quality)
    return join(
        ["the interval of Relative Δ is wide"] * wide
        + ["some loss of quality is not excluded"] * possible
    )


def transfer_sentence(standing: Standing) -> str:
    """Return whether a system does on other data what it does on those it was fitted on."""
    name, method = called(standing.system), standing.verdicts[0].method
    tests = [v for v in standing.verdicts if v.role == "transfer"]
    good, bad = [v for v in tests if v.met], [v for v in tests if not v.met]
    if method is None or not method.fitted_on:
        return (
            f"It is not known on which data {name} was fitted, so nothing here is a proof of "
            "transfer."
        )
    if not tests:
        return (
            f"{name} was fitted on {called(method.fitted_on)} and not tested on data that are new "
            "to it: whether it transfers is not known."
        )
    if not bad:
        doubtful = [v for v in good if not v.proven]
        start = "appears to transfer to" if doubtful else "transfers to"
        tail = f", but {_doubts(doubtful)}" if doubtful else ""
        return f"{name} {start} {_where(good)}{tail}."
    failed = f"{_where(bad)} (Relative Δ {'; '.join(map(_failure, bad[:_NAMED]))})"
    if good:
        return f"{name} meets the criteria on new data on {_where(good)}, not on {failed}."
    return f"{name} is not shown to transfer: it fails on {failed}."


def _failure(verdict: DebiasVerdict) -> str:
    """Say from where to where Relative Δ went, and why the criteria are not met."""
    before, after, kind = verdict.skew.before, verdict.skew.after, verdict.kind
    if after is None:
        return "not measured"
    start = "" if before is None else f"{delta(before.estimate)} to "
    why = (
        (kind in ("reached", "uncertain"), "but quality falls"),
        (kind == "close", "near, but a rest is measurable"),
        (verdict.worse, "worse than before"),
        (not significant(verdict.report, verdict.skew), "not a significant change"),
        (kind == "overcorrected", "past the target"),
        (True, "nearer, but not near enough"),
    )
    return f"{start}{delta(after.estimate)}, {next(text for applies, text in why if applies)}"


def choice_sentence(report: DebiasReport) -> str:
    """Return which changed system meets all criteria, and where."""
    found, n = standings(report), len(report.datasets)
    if not found:
        return "No changed system was compared."
    name, met = called(found[0].system), found[0].met
    if not met:
        anywhere = {1: "", 2: " on either data set"}.get(n, " on any data set")
        if len(found) == 1:
            return f"{name} does not meet all criteria{anywhere}."
        return (
            f"None of {len(found)} changed systems meets all criteria{anywhere}; {name} comes "
            "nearest to the target."
        )
    text = f"{name} meets all criteria on {_where(met)}"
    if len(met) < n and len(met) <= _NAMED:
        text += f" ({len(met)} of {n} data sets)"
    if doubtful := [v for v in met if not v.proven]:
        where = "" if len(met) == 1 else f" on {_where(doubtful)}"
        text += f", though{where} only by its estimates: {_doubts(doubtful)}"
    if len(found) == 1:
        return f"{text}."
    others = [s for s in found[1:] if s.met]
    if not others:
        return f"Of {len(found)} changed systems only {text}."
    clauses = [
        f"{called(s.system)} on {_where(s.met)}"
        + ("" if s.n_proven == len(s.met) else " (by its estimates)")
        for s in others[:_NAMED]
    ]
    if len(others) > _NAMED:
        clauses.append(f"{len(others) - _NAMED} more elsewhere")
    verb = "does" if len(others) == 1 else "do"
    return f"Of {len(found)} changed systems {text}; so {verb} {join(clauses)}."


# The whole report in a few sentences


def headline(report: DebiasReport) -> str:
    """Return what a reader in a hurry should take away."""
    if found := standings(report):
        return " ".join(
            filter(None, (choice_sentence(report), _numbers(found[0]), transfer_sentence(found[0])))
        )
    if not report.datasets:
        return "Nothing was compared."
    cutoff = report.config.skew_cutoff
    clauses = [
        f"{delta_ends(d.outcomes[0].skew_at(cutoff).after)} on {called(data_name(report, d))}"
        for d in report.datasets[:_NAMED]
        if d.outcomes
    ]
    now = f" As it is, Relative Δ of NDCG@{cutoff} is {join(clauses)}." if clauses else ""
    return f"{choice_sentence(report)}{now}"


# The first screen


def first(report: DebiasReport) -> First:
    """Return the first screen: who ranks higher before and after, the verdict, what is next."""
    found = standings(report)
    data = next((d.data.name for d in report.datasets), "")
    again = f"rag-sourcebias audit source {data_argument(data)}"
    if not found:
        return First(answer="No changed system was compared.", why="First:", command=again)
    best = found[0]
    shown = best.verdicts[:_NAMED]
    rows = tuple(row for v in shown for row in _before_and_after(v, several=len(shown) > 1))
    at = shown[0]
    return First(
        answer=_first_answer(at),
        verdict=_first_verdict(found, len(report.datasets)),
        standing="baseline" if best.met and best.n_proven == len(best.verdicts) else "",
        doubts=_first_doubts(best),
        caption=f"Queries, before and after {called(best.system)}",
        rows=rows,
        why="Try it on your own data:" if best.met else "Look at where it fails:",
        command=again,
    )


def _sides(outcome: DebiasOutcome, cutoff: int) -> tuple[int, int, int]:
    """Count queries in which the baseline's text scores higher, neither does, or the other's."""
    base, other = (outcome.scores.of(row, cutoff) for row in ("baseline", "other"))
    return int((base > other).sum()), int((base == other).sum()), int((base < other).sum())


def _first_answer(verdict: DebiasVerdict) -> str:
    cutoff, names = verdict.skew.cutoff, _source_names(verdict)
    before = _sides(verdict.dataset.outcomes[0], cutoff)
    after = _sides(verdict.outcome, cutoff)
    side = 0 if before[0] >= before[2] else 2
    total = counted(sum(after), "query", "queries")
    return (
        f"{capital(names[side // 2])} text ranks higher in {count(after[side])} of {total} on "
        f"{called(verdict.on)} with {called(verdict.system)}; it was {count(before[side])} before."
    )


def _source_names(verdict: DebiasVerdict) -> tuple[str, str]:
    base = verdict.report.config.baseline_source
    names = short_names((base, verdict.dataset.other))
    return names[base], names[verdict.dataset.other]


def _before_and_after(verdict: DebiasVerdict, *, several: bool) -> tuple[FirstRow, ...]:
    cutoff, names = verdict.skew.cutoff, _source_names(verdict)
    where = f"{shorten(verdict.on, _LONGEST)}, " if several else ""
    return tuple(
        FirstRow(
            name=f"{where}{when}",
            parts=(
                (f"{names[0]} higher", higher, "baseline"),
                ("tie", ties, "even"),
                (f"{names[1] if not several else 'LLM'} higher", lower, "other"),
            ),
            text=f"{count(higher)} / {count(ties)} / {count(lower)}",
        )
        for when, outcome in (("before", verdict.dataset.outcomes[0]), ("after", verdict.outcome))
        for higher, ties, lower in (_sides(outcome, cutoff),)
    )


def _first_verdict(found: Sequence[Standing], n: int) -> str:
    """Say on how many data sets the best system meets all criteria, and whether beyond doubt."""
    best, name = found[0], called(found[0].system)
    of = f" on {len(best.met)} of {n} data sets" if n > 1 else ""
    which = "" if len(found) == 1 else f", the best of {len(found)}"
    if worse := [v for v in best.verdicts if v.worse]:
        where = f" on {_where(worse)}" if n > 1 else ""
        return f"Verdict: {name}{which} made it worse{where}."
    if not best.met:
        unknown = all(v.kind == "unknown" for v in best.verdicts)
        if unknown:
            return f"Cannot tell whether {name} helps: these data allow no comparison."
        return f"Verdict: {name}{which} does not do what was asked."
    sure = (
        "" if best.n_proven == len(best.met) else ", by its estimates only: these are few queries"
    )
    return f"Verdict: {name}{which} does what was asked{of}{sure}."


def _first_doubts(best: Standing) -> tuple[str, ...]:
    """Say what the change costs, and that new data are not known."""
    if all(v.kind == "unknown" for v in best.verdicts):
        return ()  # the verdict says that nothing can be told
    told, lost = [], [v for v in best.verdicts if any(kind == "lost" for _, kind in v.quality)]
    if lost:
        told.append("It finds relevant texts less well than before.")
    elif not all(kind == "kept" for v in best.verdicts for _, kind in v.quality):
        told.append("Whether it finds relevant texts as well as before is not certain.")
    method = best.verdicts[0].method
    if method is None or not method.fitted_on:
        told.append("It is not known what it was fitted on.")
    elif not any(v.role in ("transfer", "held out") for v in best.verdicts):
        told.append("It was not tested on data that are new to it.")
    return tuple(told)


def _numbers(best: Standing) -> str:
    """Say what the best system does to skew and quality on each data set."""
    shown = [v for v in best.verdicts[:_NAMED] if v.skew.after is not None]
    if not shown:
        return ""
    clauses = [_clause(v, brief=len(shown) > 1) for v in shown]
    rest = len(best.verdicts) - _NAMED
    tail = f"; {count(rest)} more data set{'s' if rest > 1 else ''} below" if rest > 0 else ""
    return f"With it Relative Δ of NDCG@{shown[0].skew.cutoff} goes {'; '.join(clauses)}{tail}."


def _clause(verdict: DebiasVerdict, *, brief: bool) -> str:
    report, before, worst = verdict.report, verdict.skew.before, verdict.worst
    start = "" if before is None else f"from {delta(before.estimate)} "
    role = {
        "fitted": ", where it was fitted",
        "held out": ", on pairs that it was not fitted on",
        "transfer": ", which is new to it",
    }.get(verdict.role, "")
    costs = [
        f"{quality_names(report)[change.quality]} {percent(change.relative)}"
        for change, _ in verdict.quality
        if change.relative is not None and (not brief or change is worst)
    ]
    measure = f"{'worst ' * brief}NDCG@{report.config.quality_cutoff}"
    cost = f" ({measure}: {', '.join(costs)})" if costs else ""
    return f"{start}to {delta_ends(verdict.skew.after)} on {called(verdict.on)}{role}{cost}"


def search_sentence(report: DebiasReport, search: DebiasSearch) -> str:
    """Return what a search found."""
    runs = f", {search.n_seeds} seeds each" if search.n_seeds > 1 else ""
    where = f" on {report.search_data}" if report.search_data else ""
    found, crossing = search.chosen_relative_delta, search.zero_crossing
    skew = "" if found is None else f", with Relative Δ {delta_ends(found)}"
    parts = [
        f"{len(search.points)} values of {report.searched or 'weight'} were tried{where}{runs}.",
        f"None was chosen: {search.refusal or 'no value was admitted'}."
        if search.chosen is None
        else f"Chosen is {weight_text(search.chosen)}{skew}: among those that lose less than "
        f"{loss(search.relative_margin)} of every quality, the one nearest the target.",
    ]
    if crossing is not None:
        parts.append(
            f"Relative Δ meets the target at {crossing.estimate:.2g} [{crossing.lower:.2g}, "
            f"{crossing.upper:.2g}]."
        )
    if search.split:
        parts.append("Choice and curve rest on different queries.")
    return " ".join(parts)
