"""What is concluded of every changed system on every data set, and the sentences that say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_sourcebias.report.format import (
    MISSING,
    count,
    delta,
    interval,
    join,
    number,
    p_clause,
    short_names,
    shorten,
    source_name,
)
from rag_sourcebias.types.debias import QUALITIES, DebiasSearch
from rag_sourcebias.types.debias_report import (
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasReport,
    QualityChange,
    SkewChange,
)
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "WIDE",
    "DebiasVerdict",
    "QualityKind",
    "Role",
    "SkewKind",
    "Standing",
    "alpha",
    "called",
    "change_ends",
    "choice_sentence",
    "criteria",
    "data_name",
    "delta_ends",
    "headline",
    "loss",
    "percent",
    "percent_ends",
    "quality_kind",
    "quality_names",
    "quality_sentence",
    "role_sentence",
    "search_sentence",
    "searched_name",
    "short",
    "significant",
    "skew_kind",
    "skew_sentence",
    "standings",
    "transfer_sentence",
    "verdict_text",
    "verdicts",
    "weight_text",
]

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
    names = short_names((base, "llm"))
    return dict(zip(QUALITIES, (f"{names[base]}-only", "LLM-only", "mixed"), strict=True))


def searched_name(report: DebiasReport) -> str:
    """Return what was searched over."""
    return report.searched or "weight"


def delta_ends(found: Interval | None) -> str:
    """Return Relative Δ with its interval, such as ``+1.1 [−6.2, 8.0]``."""
    return MISSING if found is None else f"{delta(found.estimate)} {interval(found)}"


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
    """Return the target, such as ``0`` or ``−5``."""
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
    """One changed system on one data set."""

    report: DebiasReport
    dataset: DebiasDataset
    outcome: DebiasOutcome

    @property
    def system(self) -> str:
        """Its name."""
        return self.outcome.name

    @property
    def on(self) -> str:
        """Name of the data set."""
        return data_name(self.report, self.dataset)

    @property
    def method(self) -> DebiasMethod | None:
        """What was done to the system, None where nobody said."""
        return next((m for m in self.report.methods if m.name == self.system), None)

    @property
    def skew(self) -> SkewChange:
        """Relative Δ at the cutoff at which it is judged."""
        return self.outcome.skew_at(self.report.config.skew_cutoff)

    @property
    def kind(self) -> SkewKind:
        """What Relative Δ says."""
        return skew_kind(self.report.config, self.skew)

    @property
    def quality(self) -> tuple[tuple[QualityChange, QualityKind], ...]:
        """Qualities at the cutoff at which they are judged, each with what its test says."""
        config = self.report.config
        return tuple(
            (change, quality_kind(config, change))
            for change in self.outcome.quality
            if change.cutoff == config.quality_cutoff
        )

    @property
    def worst(self) -> QualityChange | None:
        """The quality that fell most or rose least, None where none is known."""
        known = [change for change, _ in self.quality if change.relative is not None]
        return min(known, key=lambda change: change.relative or 0.0, default=None)

    @property
    def met(self) -> bool:
        """Whether every criterion holds by the estimates, the interval of the skew included."""
        held = not any(_falls(self.report.config, change) for change, _ in self.quality)
        return self.kind in ("reached", "uncertain") and bool(self.quality) and held

    @property
    def proven(self) -> bool:
        """Whether in addition the interval is narrow and every loss of the margin is excluded."""
        kept = all(kind == "kept" for _, kind in self.quality)
        return self.met and self.kind == "reached" and kept

    @property
    def settled(self) -> bool:
        """Whether Relative Δ was within the tolerance before."""
        config, before = self.report.config, self.skew.before
        return before is not None and abs(before.estimate - config.target) < config.tolerance

    @property
    def away(self) -> bool:
        """Whether Relative Δ lies further from the target than before."""
        target, before, after = self.report.config.target, self.skew.before, self.skew.after
        if before is None or after is None:
            return False
        return abs(after.estimate - target) > abs(before.estimate - target)

    @property
    def worse(self) -> bool:
        """Whether Relative Δ has moved away from the target significantly."""
        return self.away and significant(self.report, self.skew)

    @property
    def role(self) -> Role:
        """What the data set is to the method.

        The one it was fitted on, one that shares pairs with it, another split of it without a pair
        in common, new, or not known.
        """
        method, judged, seen = self.method, self.dataset.data.name, self.outcome.n_seen
        if method is None or not method.fitted_on:
            return "overlap" if seen else "unknown"
        if method.fitted_on == judged:
            source = method.settings.get("source", "")
            # Fitted on the same data, but on the texts of another generating model.
            other_model = source.startswith("llm:") and source != self.dataset.other
            return "transfer" if other_model and not seen else "fitted"
        if seen:
            return "overlap"
        # The name of data without its split.
        fitted, collection = (name.partition("/")[0] for name in (method.fitted_on, judged))
        return "held out" if fitted == collection else "transfer"


def verdicts(report: DebiasReport) -> tuple[DebiasVerdict, ...]:
    """Return a verdict for every changed system on every data set.

    By system, those with a described method first, then in the order of the data sets.
    """
    found = [
        DebiasVerdict(report=report, dataset=dataset, outcome=outcome)
        for dataset in report.datasets
        for outcome in dataset.outcomes[1:]
    ]
    names = {v.system for v in found}
    described = [method.name for method in report.methods if method.name in names]
    order = list(dict.fromkeys([*described, *(v.system for v in found)]))
    return tuple(sorted(found, key=lambda v: order.index(v.system)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """One changed system over all data sets."""

    system: str
    verdicts: tuple[DebiasVerdict, ...]

    @property
    def met(self) -> tuple[DebiasVerdict, ...]:
        """Where it meets all criteria."""
        return tuple(v for v in self.verdicts if v.met)

    @property
    def n_proven(self) -> int:
        """On how many data sets that is beyond doubt."""
        return sum(v.proven for v in self.verdicts)

    @property
    def distance(self) -> float:
        """Mean |Relative Δ − target| after the change; infinite where nothing was measured."""
        left = [
            abs(v.skew.after.estimate - v.report.config.target)
            for v in self.verdicts
            if v.skew.after is not None
        ]
        return sum(left) / len(left) if left else math.inf


def standings(report: DebiasReport) -> tuple[Standing, ...]:
    """Return every changed system, the best first.

    Best is who meets all criteria on most data sets, then who does so beyond doubt on most, then
    who comes nearest to the target.
    """
    groups: dict[str, list[DebiasVerdict]] = {}
    for verdict in verdicts(report):
        groups.setdefault(verdict.system, []).append(verdict)
    found = [Standing(system=name, verdicts=tuple(of)) for name, of in groups.items()]
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
    if lost := [names[change.quality] for change, kind in quality if kind == "lost"]:
        which = "" if len(lost) == len(quality) else f"{join(lost)} "
        return f"{skew}; {which}quality lost"
    if not quality:
        return skew
    fallen = [
        names[change.quality]
        for change, kind in quality
        if kind != "unknown" and _falls(report.config, change)
    ]
    if fallen:
        return f"{skew}; {join(fallen)} quality falls"
    if kinds == {"kept"}:
        return f"{skew}; quality kept"
    if "unknown" in kinds:
        return f"{skew}; quality not tested"
    return f"{skew}; loss of quality not excluded"


def verdict_text(verdict: DebiasVerdict) -> str:
    """Return everything about one system on one data set, without the names of the two."""
    told = (skew_sentence(verdict), quality_sentence(verdict), role_sentence(verdict))
    return " ".join(told)


def skew_sentence(verdict: DebiasVerdict) -> str:
    """Return what happened to Relative Δ and whether that reaches the target."""
    skew = verdict.skew
    name = f"Relative Δ of NDCG@{skew.cutoff}"
    if skew.after is None:
        return f"{name} has no interval after the change ({skew.refusal or 'not measured'})."
    if skew.before is None:
        text = f"{name} is {delta_ends(skew.after)}; what it was before is not known"
    else:
        text = f"{name} goes from {delta_ends(skew.before)} to {delta_ends(skew.after)}"
    if skew.change is not None:
        text += f" (change {delta_ends(skew.change)}"
        p, of = skew.p_adjusted, "adjusted p"
        if p is None:
            p, of = skew.p_value, "p"
        if p is not None:
            text += f", {p_clause(p, name=of)}"
            text += "" if significant(verdict.report, skew) else ", not significant"
        text += ")"
    return f"{text}: {_reach(verdict, skew.after)}."


def _reach(verdict: DebiasVerdict, now: Interval) -> str:
    """Say whether Relative Δ reaches the target."""
    config, kind, to = verdict.report.config, verdict.kind, _target(verdict.report.config)
    aim, covered = f"{to} ± {config.tolerance:g}", not now.excludes(config.target)
    if kind == "reached":
        kept = "it was and stays within" if verdict.settled else "it reaches"
        return f"{kept} {aim}, and the interval covers {to}"
    if kind == "uncertain":
        wanted = WIDE * config.tolerance
        needed = math.ceil(now.n_labeled * (now.half_width / wanted) ** 2)
        return (
            f"the estimate {'was and stays' if verdict.settled else 'is'} within {aim}, but an "
            f"interval of ±{number(now.half_width)} points leaves room for much else; about "
            f"{count(needed)} queries instead of {count(now.n_labeled)} would narrow it to "
            f"±{wanted:g}"
        )
    if kind == "close":
        return f"within {aim}, though the interval excludes {to}: a rest is left"
    if kind == "overcorrected":
        text = f"it goes past {aim} to the other side"
        if config.target == 0:
            winner = config.baseline_source if now.estimate > 0 else verdict.dataset.other
            text += f", where {source_name(winner)} text ranks higher"
        if covered:
            return f"{text}; {to} is still within the interval"
        return f"{text}, further off than before" if verdict.away else text
    text = f"it misses {aim}"
    if verdict.settled:
        text = f"it leaves {aim}, where it was before"
    elif verdict.away:
        text = f"further from {to} than before"
    return f"{text}, though {to} is within the interval" if covered else text


def quality_sentence(verdict: DebiasVerdict) -> str:
    """Return what each quality did, and whether a loss of the margin is excluded."""
    quality, names = verdict.quality, quality_names(verdict.report)
    if not quality:
        return "Quality was not measured."

    def named(wanted: QualityKind) -> list[str]:
        return [names[change.quality] for change, kind in quality if kind == wanted]

    c = verdict.report.config
    changes = join([f"{names[change.quality]} {percent(change.relative)}" for change, _ in quality])
    kept, lost = named("kept"), named("lost")
    which = join(kept) if kept else "none"
    if len(kept) == len(quality):
        which = "all three" if len(quality) == 3 else "each"
    parts = [
        f"NDCG@{c.quality_cutoff} changes by {changes}",
        f"a loss of {loss(c.relative_margin)} or more is excluded for {which}",
        *(
            _not_kept(names[change.quality], change)
            for change, kind in quality
            if kind in ("open", "unknown")
        ),
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
    seen, method, role = verdict.outcome.n_seen, verdict.method, verdict.role
    overlap = (
        f"{count(seen)} of {count(verdict.dataset.n_pairs)} judged pairs were seen in fitting, so "
        "that part of the effect may be memory"
        if seen
        else ""
    )
    if role == "fitted":
        rest = f"; {overlap}" if overlap else ", though on none of the judged pairs"
        return f"The method was fitted on these data{rest}."
    if role == "transfer" and method is not None:
        same = method.fitted_on == verdict.dataset.data.name
        what = "other generating models" if same else method.fitted_on
        return f"A transfer test: the method was fitted on {what}."
    if role == "held out" and method is not None:
        return f"None of its judged pairs was seen in fitting, on {method.fitted_on}."
    return f"{overlap}." if overlap else "It is not known what the method was fitted on."


# Sentences about one changed system on all data sets


def _where(found: Sequence[DebiasVerdict]) -> str:
    if len(found) > _NAMED:
        n = len(found[0].report.datasets)
        return f"{count(len(found))} of {count(n)} data sets"
    return join([called(v.on) for v in found])


def _doubts(found: Sequence[DebiasVerdict]) -> str:
    parts = []
    if any(v.kind == "uncertain" for v in found):
        parts.append("the interval of Relative Δ is wide")
    if any(kind != "kept" for v in found for _, kind in v.quality):
        parts.append("some loss of quality is not excluded")
    return join(parts)


def transfer_sentence(standing: Standing) -> str:
    """Return whether a system does on other data what it does on those it was fitted on."""
    name, method = called(standing.system), standing.verdicts[0].method
    tests = [v for v in standing.verdicts if v.role == "transfer"]
    if not tests:
        if method is None or not method.fitted_on:
            return (
                f"It is not known on which data {name} was fitted, so nothing here is a proof "
                "of transfer."
            )
        return (
            f"{name} was fitted on {called(method.fitted_on)} and not tested on data that are new "
            "to it: whether it transfers is not known."
        )
    good, bad = [v for v in tests if v.met], [v for v in tests if not v.met]
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
    before, after = verdict.skew.before, verdict.skew.after
    if after is None:
        return "not measured"
    start = "" if before is None else f"{delta(before.estimate)} to "
    if verdict.kind in ("reached", "uncertain"):
        why = "but quality falls"
    elif verdict.kind == "close":
        why = "near, but a rest is measurable"
    elif verdict.worse:
        why = "worse than before"
    elif not significant(verdict.report, verdict.skew):
        why = "not a significant change"
    else:
        over = verdict.kind == "overcorrected"
        why = "past the target" if over else "nearer, but not near enough"
    return f"{start}{delta(after.estimate)}, {why}"


def choice_sentence(report: DebiasReport) -> str:
    """Return which changed system meets all criteria, and where."""
    found = standings(report)
    if not found:
        return "No changed system was compared."
    first, n = found[0], len(report.datasets)
    name, met = called(first.system), first.met
    if not met:
        anywhere = "" if n == 1 else " on any data set" if n > 2 else " on either data set"
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
    found = standings(report)
    if found:
        told = (choice_sentence(report), _numbers(found[0]), transfer_sentence(found[0]))
        return " ".join(filter(None, told))
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


def _numbers(best: Standing) -> str:
    """Say what the best system does to skew and quality on each data set."""
    shown = [v for v in best.verdicts[:_NAMED] if v.skew.after is not None]
    if not shown:
        return ""
    clauses = [_clause(v, brief=len(shown) > 1) for v in shown]
    rest = len(best.verdicts) - _NAMED
    tail = f"; {count(rest)} more data set{'s' if rest > 1 else ''} below" if rest > 0 else ""
    cutoff = shown[0].skew.cutoff
    return f"With it Relative Δ of NDCG@{cutoff} goes {'; '.join(clauses)}{tail}."


def _clause(verdict: DebiasVerdict, *, brief: bool) -> str:
    report, before, worst = verdict.report, verdict.skew.before, verdict.worst
    start = "" if before is None else f"from {delta(before.estimate)} "
    role = {
        "fitted": ", where it was fitted",
        "held out": ", on pairs that it was not fitted on",
        "transfer": ", which is new to it",
    }.get(verdict.role, "")
    text = f"{start}to {delta_ends(verdict.skew.after)} on {called(verdict.on)}{role}"
    names, measure = quality_names(report), f"NDCG@{report.config.quality_cutoff}"
    if worst is None:
        return text
    if brief:
        return f"{text} (worst {measure}: {names[worst.quality]} {percent(worst.relative)})"
    known = [change for change, _ in verdict.quality if change.relative is not None]
    costs = ", ".join(f"{names[change.quality]} {percent(change.relative)}" for change in known)
    return f"{text} ({measure}: {costs})"


def search_sentence(report: DebiasReport, search: DebiasSearch) -> str:
    """Return what a search found."""
    runs = f", {search.n_seeds} seeds each" if search.n_seeds > 1 else ""
    where = f" on {report.search_data}" if report.search_data else ""
    text = f"{len(search.points)} values of {searched_name(report)} were tried{where}{runs}. "
    if search.chosen is not None:
        text += f"Chosen is {weight_text(search.chosen)}"
        if search.chosen_relative_delta is not None:
            text += f", with Relative Δ {delta_ends(search.chosen_relative_delta)}"
        text += ": among those that lose less than "
        text += f"{loss(search.relative_margin)} of every quality, the one nearest the target."
    else:
        text += f"None was chosen: {search.refusal or 'no value was admitted'}."
    if (crossing := search.zero_crossing) is not None:
        text += (
            f" Relative Δ meets the target at {crossing.estimate:.2g} "
            f"[{crossing.lower:.2g}, {crossing.upper:.2g}]."
        )
    if search.split:
        text += " Choice and curve rest on different queries."
    return text
