"""What is concluded of every changed system on every data set, and the sentences that say so."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from rag_sourcebias.core.finding import number, short_names, shorten, source_name
from rag_sourcebias.debias.data import (
    QUALITIES,
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasResults,
    DebiasSearch,
    QualityChange,
    SkewChange,
)
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.report.document import First, FirstRow
from rag_sourcebias.report.legacy import (
    alpha_of,
    called,
    capital,
    count,
    counted,
    delta,
    estimate,
    join,
    p_clause,
    roughly,
)

QualityKind: TypeAlias = Literal["kept", "open", "lost", "unknown"]
Role: TypeAlias = Literal["fitted", "overlap", "held out", "transfer", "own", "unknown"]
MADE_WORSE = "made_worse"
"""Verdict on a change that is shown to add skew, or to cost more quality than is accepted."""
_NAMED = 3  # data sets and systems that a sentence names
_LONGEST = 60  # characters of a name


# How data sets, qualities and weights are called, and how their numbers are written


def data_name(report: DebiasResults, dataset: DebiasDataset) -> str:
    """Return the name of a data set, with the source compared where the name alone is ambiguous."""
    name = dataset.data.name or "unnamed data"
    if sum(d.data.name == dataset.data.name for d in report.datasets) < 2:
        return name
    return f"{name}, {source_name(dataset.other)}"


def quality_names(report: DebiasResults) -> dict[str, str]:
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


def _margin(config: DebiasConfig) -> str:
    """Return within what sources count as treated alike, such as ``within ±5``."""
    of = f" of {_target(config)}" if config.target else ""
    return f"within ±{config.tolerance:g}{of}"


def criteria(report: DebiasResults) -> str:
    """Return what a system has to do to meet all criteria."""
    c, names = report.config, quality_names(report)
    return (
        f"The interval of Relative Δ of NDCG@{c.skew_cutoff} lies {_margin(c)} points, and a loss "
        f"of {loss(c.relative_margin)} or more is excluded for {join([*names.values()])} "
        f"NDCG@{c.quality_cutoff}"
    )


# Verdicts


def significant(report: DebiasResults, skew: SkewChange) -> bool:
    """Whether Relative Δ changed, after correction where there is one."""
    p = skew.p_value if skew.p_adjusted is None else skew.p_adjusted
    return p is not None and p < alpha_of(report.config.confidence_level) and skew.stands


def quality_kind(config: DebiasConfig, change: QualityChange) -> QualityKind:
    """Return whether a loss of the margin or more is excluded, possible, shown or not tested."""
    if change.test is None:
        return "unknown"
    if change.holes:
        return "open"
    if change.test.passed:
        return "kept"
    shown = (
        change.difference is not None
        and change.difference.upper < -config.relative_margin * change.before
    )
    return "lost" if shown else "open"


@dataclass(frozen=True, kw_only=True, eq=False)
class DebiasVerdict:
    """One changed system on one data set.

    Parameters
    ----------
    method : DebiasMethod
        What was done to the system.
    role : {"fitted", "overlap", "held out", "transfer", "own", "unknown"}
        What the data set is to the method: the one it was fitted on, one that shares pairs with
        it, another split of it without a pair in common, new, the one whose own texts it looks
        at anew (copies), or not known.
    skew
        Relative Δ at the cutoff at which it is judged.
    quality
        Names of the qualities at the cutoff at which they are judged, each with how it changed and
        what its test says.
    code : SkewCode
        What Relative Δ after the change says.
    worse : bool
        Whether it is shown to lie further from the target than before.
    """

    report: DebiasResults
    dataset: DebiasDataset
    outcome: DebiasOutcome
    system: str
    on: str
    method: DebiasMethod
    role: Role
    skew: SkewChange
    quality: tuple[tuple[str, QualityChange, QualityKind], ...]
    code: SkewCode
    worse: bool

    @property
    def lost(self) -> list[str]:
        """Names of the qualities that are shown to lose more than is accepted."""
        return [name for name, _, kind in self.quality if kind == "lost"]

    @property
    def made_worse(self) -> bool:
        """Whether more skew, or a loss of quality beyond the margin, is shown."""
        return self.worse or bool(self.lost)

    @property
    def verdict(self) -> str:
        """The code of the verdict on the change as a whole."""
        return MADE_WORSE if self.made_worse else self.code.value

    @property
    def kept(self) -> bool:
        """Whether a loss of the margin is excluded for every quality."""
        return all(kind == "kept" for _, _, kind in self.quality)

    @property
    def met(self) -> bool:
        """Whether both sources are treated alike now, at no loss."""
        return self.code is SkewCode.ALIKE and self.kept

    @property
    def winner(self) -> str:
        """Source that ranks higher now, where one does."""
        base, other = self.names
        now = self.skew.after
        return base if now is not None and now.estimate > self.report.config.target else other

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the baseline and of the source compared with it."""
        return tuple(short_names((self.report.config.baseline_source, self.dataset.other)).values())

    @property
    def turned(self) -> bool:
        """Whether it lay on the other side of the target before."""
        target, before, now = self.report.config.target, self.skew.before, self.skew.after
        return (
            before is not None
            and now is not None
            and (before.estimate - target) * (now.estimate - target) < 0
        )


def _verdict(
    report: DebiasResults, dataset: DebiasDataset, outcome: DebiasOutcome
) -> DebiasVerdict:
    c, skew = report.config, outcome.skew_at(report.config.skew_cutoff)
    method = next(m for m in report.methods if m.name == outcome.name)
    names = quality_names(report)
    return DebiasVerdict(
        report=report,
        dataset=dataset,
        outcome=outcome,
        system=outcome.name,
        on=data_name(report, dataset),
        method=method,
        role=_role(method, dataset, outcome),
        skew=skew,
        quality=tuple(
            (names[change.quality], change, quality_kind(c, change))
            for change in outcome.quality
            if change.cutoff == c.quality_cutoff
        ),
        code=skew.code,
        worse=skew.worse and skew.code is not SkewCode.ALIKE and significant(report, skew),
    )


def _role(method: DebiasMethod, dataset: DebiasDataset, outcome: DebiasOutcome) -> Role:
    seen = bool(outcome.n_seen)
    if method.kind == "twins":
        return "own"
    if not method.fitted_on:
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


def verdicts(report: DebiasResults) -> tuple[DebiasVerdict, ...]:
    """Return a verdict for every changed system on every data set.

    By system, in the order of the methods, then in that of the data sets.
    """
    found = [_verdict(report, d, outcome) for d in report.datasets for outcome in d.outcomes[1:]]
    order = [method.name for method in report.methods]
    return tuple(sorted(found, key=lambda v: order.index(v.system)))


class Standing(NamedTuple):
    """One changed system over all data sets.

    Parameters
    ----------
    met : tuple of DebiasVerdict
        Where it meets all criteria.
    distance : float
        Mean abs(Relative Δ - target) after the change; infinite where nothing was measured.
    """

    system: str
    verdicts: tuple[DebiasVerdict, ...]
    met: tuple[DebiasVerdict, ...]
    distance: float


def standings(report: DebiasResults) -> tuple[Standing, ...]:
    """Return every changed system, the best first.

    Best is who meets all criteria on most data sets, then who makes fewest worse, then who comes
    nearest to the target.
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
                distance=sum(left) / len(left) if left else math.inf,
            )
        )
    return tuple(
        sorted(found, key=lambda s: (-len(s.met), sum(v.worse for v in s.verdicts), s.distance))
    )


# Sentences about one changed system on one data set


def short(verdict: DebiasVerdict) -> str:
    """Return the verdict in a few words."""
    standing, lost = _standing(verdict), verdict.lost
    if lost:
        which = "" if len(lost) == len(verdict.quality) else f"{join(lost)} "
        return f"{standing}; {which}quality lost"
    if verdict.kept:
        return f"{standing}; quality kept"
    if any(kind == "unknown" for _, _, kind in verdict.quality):
        return f"{standing}; quality not tested"
    return f"{standing}; loss of quality not excluded"


def _standing(verdict: DebiasVerdict) -> str:
    c, needed = verdict.report.config, verdict.skew.n_needed
    if verdict.worse:
        return "made it worse"
    if verdict.code is SkewCode.ALIKE:
        return f"alike {_margin(c)} now"
    if verdict.skew.holes:
        return "cannot tell: judgments have holes"
    if verdict.code is SkewCode.CANNOT_TELL:
        return f"cannot tell, about {roughly(needed)} queries needed" if needed else "cannot tell"
    if verdict.code is SkewCode.REFUSED:
        return "no verdict"
    if c.target:
        return f"not {_margin(c)}"
    return f"{_SIDE[verdict.turned]} favours {verdict.winner} text"


def verdict_text(verdict: DebiasVerdict) -> str:
    """Return everything about one system on one data set, without the names of the two."""
    parts = skew_sentence(verdict), _judged(verdict), quality_sentence(verdict)
    return " ".join(filter(None, (*parts, role_sentence(verdict))))


def skew_sentence(verdict: DebiasVerdict) -> str:
    """Return what happened to Relative Δ, and what it says now."""
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
        sure += "" if skew.stands else " with the unjudged counted"
        tested = "" if p is None else f", {p_clause(p, name=of)}{sure}"
        change = f" (change {delta_ends(skew.change)}{tested})"
    there = ""
    if verdict.code is SkewCode.CANNOT_TELL:
        there = f" instead of {count(skew.after.n_labeled)}" * bool(skew.n_needed)
    return f"{name} {went}{change}: {_standing(verdict)}{there}."


def quality_sentence(verdict: DebiasVerdict) -> str:
    """Return what each quality did, and whether a loss of the margin is excluded."""
    quality, lost, c = verdict.quality, verdict.lost, verdict.report.config
    kept = [name for name, _, kind in quality if kind == "kept"]
    which = "all three" if verdict.kept else join(kept) or "none"
    parts = [
        f"NDCG@{c.quality_cutoff} changes by "
        + join([f"{name} {percent(change.relative)}" for name, change, _ in quality]),
        f"a loss of {loss(c.relative_margin)} or more is excluded for {which}",
        *(_not_kept(name, change) for name, change, kind in quality if kind in ("open", "unknown")),
    ]
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        parts.append(f"{join(lost)} {verb} shown to lose more than that")
    return f"{'; '.join(parts)}."


def _not_kept(name: str, change: QualityChange) -> str:
    test = change.test
    if test is None:
        return f"{name} was not tested ({change.refusal or 'no reason given'})"
    if change.holes:
        return f"{name} cannot be told: judgments have holes"
    text = f"{name} may have lost up to {number(max(-test.lower, 0.0))}%"
    if test.n_needed is None or test.n_needed <= test.n_queries:
        return text
    return (
        f"{text} (about {count(test.n_needed)} queries instead of {count(test.n_queries)} could "
        "settle it)"
    )


def role_sentence(verdict: DebiasVerdict) -> str:
    """Return whether the data are new to the method."""
    seen, fitted_on = verdict.outcome.n_seen, verdict.method.fitted_on
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
        "own": "Copies were found in these texts themselves, without judgments or tags.",
        "unknown": "It is not known what the method was fitted on.",
    }[verdict.role]


# Sentences about one changed system on all data sets


def _where(found: Sequence[DebiasVerdict]) -> str:
    if len(found) > _NAMED:
        return f"{count(len(found))} of {count(len(found[0].report.datasets))} data sets"
    return join([called(v.on) for v in found])


def choice_sentence(report: DebiasResults) -> str:
    """Return which changed system meets all criteria, and where."""
    found, n = standings(report), len(report.datasets)
    name, met = called(found[0].system), found[0].met
    if not met:
        anywhere = {1: "", 2: " on either data set"}.get(n, " on any data set")
        if len(found) == 1:
            return f"{name} does not meet all criteria{anywhere}."
        return f"None of {len(found)} changed systems meets all criteria{anywhere}."
    text = f"{name} meets all criteria on {_where(met)}"
    if len(met) < n and len(met) <= _NAMED:
        text += f" ({len(met)} of {n} data sets)"
    return f"{text}." if len(found) == 1 else f"Of {len(found)} changed systems {text}."


# The whole report in a few sentences


def headline(report: DebiasResults) -> str:
    """Return what a reader in a hurry should take away."""
    return f"{choice_sentence(report)} {_numbers(standings(report)[0])}".rstrip()


# The first screen


def first(report: DebiasResults) -> First:
    """Return the first screen: who ranks higher before and after, the verdict."""
    found = standings(report)
    best = found[0]
    shown = best.verdicts[:_NAMED]
    rows = tuple(row for v in shown for row in _before_and_after(v, several=len(shown) > 1))
    at = shown[0]
    return First(
        answer=_first_answer(at),
        verdict=_first_verdict(found, len(report.datasets)),
        standing="baseline" if len(best.met) == len(best.verdicts) else "",
        doubts=_first_doubts(best),
        caption=f"Queries, before and after {called(best.system)}",
        rows=rows,
    )


def _sides(outcome: DebiasOutcome, cutoff: int) -> tuple[int, int, int]:
    """Count queries in which the baseline's text scores higher, neither does, or the other's."""
    base, other = (outcome.scores.of(row, cutoff) for row in ("baseline", "other"))
    return int((base > other).sum()), int((base == other).sum()), int((base < other).sum())


def _judged(verdict: DebiasVerdict) -> str:
    """Return Judged@k of both sources before and after, where there are holes."""
    before, after = verdict.dataset.outcomes[0].scores.judged, verdict.outcome.scores.judged
    if before == after == (1.0, 1.0):
        return ""
    parts = [
        f"{name} text {was:.0%} before and {now:.0%} after"
        for name, was, now in zip(verdict.names, before, after, strict=True)
    ]
    return f"Of what stands on the first {verdict.skew.cutoff} ranks was judged: {join(parts)}."


def _first_answer(verdict: DebiasVerdict) -> str:
    cutoff, names = verdict.skew.cutoff, verdict.names
    base, same, other = _sides(verdict.outcome, cutoff)
    base_before, _, other_before = _sides(verdict.dataset.outcomes[0], cutoff)
    return (
        f"{capital(names[0])} text ranks higher in {count(base)} and {names[1]} text in "
        f"{count(other)} of {counted(base + same + other, 'query', 'queries')} on "
        f"{called(verdict.on)} with {called(verdict.system)}; before in {count(base_before)} and "
        f"{count(other_before)}."
    )


def _before_and_after(verdict: DebiasVerdict, *, several: bool) -> tuple[FirstRow, ...]:
    cutoff, names = verdict.skew.cutoff, verdict.names
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
    """Say whether the best system treats both alike now, without a measure or an interval."""
    best, name = found[0], called(found[0].system)
    which = "" if len(found) == 1 else f", the best of {len(found)}"
    codes = dict.fromkeys(v.verdict for v in best.verdicts)
    if n > 1 and len(codes) > 1:
        clauses = [
            f"{_PLAIN.get(code, 'one source still ranks higher')} on "
            + _where([v for v in best.verdicts if v.verdict == code])
            for code in codes
        ]
        return f"Verdict: {name}{which}: {'; '.join(clauses)}."
    at = best.verdicts[0]
    if at.verdict == MADE_WORSE:
        return f"Verdict: {name}{which} made it worse."
    if at.verdict == SkewCode.ALIKE:
        return f"Verdict: {name}{which} treats both alike now, within the margin asked for."
    if at.verdict == SkewCode.REFUSED:
        return f"Cannot tell whether {name} helps: these data allow no comparison."
    if at.skew.holes:
        return (
            f"Cannot tell whether {name}{which} treats both alike now: judgments have holes, and "
            "the answer depends on what was not judged."
        )
    if at.verdict == SkewCode.CANNOT_TELL:
        needed = max((v.skew.n_needed or 0 for v in best.verdicts), default=0)
        more = f"; about {roughly(needed)} are needed" * bool(needed)
        return f"Cannot tell whether {name}{which} treats both alike now: too few queries{more}."
    return f"Verdict: with {name}{which} {at.winner} text {_SIDE[at.turned]} ranks higher."


_SIDE = ("still", "now")
_PLAIN = {
    MADE_WORSE: "made it worse",
    SkewCode.ALIKE: "treats both alike now",
    SkewCode.CANNOT_TELL: "nothing can be told",
    SkewCode.REFUSED: "no comparison",
}


def _first_doubts(best: Standing) -> tuple[str, ...]:
    """Say what the change costs, and that new data are not known."""
    if all(v.code is SkewCode.REFUSED for v in best.verdicts):
        return ()  # the verdict says that nothing can be told
    told = [_judged(best.verdicts[0])]
    if any(v.lost for v in best.verdicts):
        told.append("It finds relevant texts less well than before.")
    elif not all(v.kept for v in best.verdicts):
        told.append("Whether it finds relevant texts as well as before is not certain.")
    if best.verdicts[0].role == "own":
        told.append("It changes nothing where LLM text has no original beside it.")
    elif not best.verdicts[0].method.fitted_on:
        told.append("It is not known what it was fitted on.")
    elif not any(v.role in ("transfer", "held out") for v in best.verdicts):
        told.append("It was not tested on data that are new to it.")
    return tuple(filter(None, told))


def _numbers(best: Standing) -> str:
    """Say what the best system does to skew and quality on each data set."""
    shown = [v for v in best.verdicts[:_NAMED] if v.skew.after is not None]
    if not shown:
        return ""
    rest = len(best.verdicts) - _NAMED
    tail = f"; {counted(rest, 'more data set')} below" if rest > 0 else ""
    clauses = "; ".join(map(_clause, shown))
    return f"With it Relative Δ of NDCG@{shown[0].skew.cutoff} goes {clauses}{tail}."


def _clause(verdict: DebiasVerdict) -> str:
    report, before = verdict.report, verdict.skew.before
    start = "" if before is None else f"from {delta(before.estimate)} "
    costs = [
        f"{name} {percent(change.relative)}"
        for name, change, _ in verdict.quality
        if change.relative is not None
    ]
    cost = f" (NDCG@{report.config.quality_cutoff}: {', '.join(costs)})" if costs else ""
    return f"{start}to {delta_ends(verdict.skew.after)} on {called(verdict.on)}{cost}"


def search_sentence(search: DebiasSearch) -> str:
    """Return where Relative Δ meets the target, or how near it comes."""
    runs = f", {search.n_seeds} seeds each" if search.n_seeds > 1 else ""
    tried = f"{len(search.points)} values of {search.searched} were tried on {search.data}{runs}"
    crossing = search.zero_crossing
    if crossing is not None:
        return (
            f"{tried}. Relative Δ meets the target at {crossing.estimate:.2g} "
            f"[{crossing.lower:.2g}, {crossing.upper:.2g}]."
        )
    nearest = min(search.points, key=lambda p: abs(p.relative_delta.estimate - search.target))
    return (
        f"{tried}. Relative Δ does not meet {search.target:g}; nearest is "
        f"{delta(nearest.relative_delta.estimate)} at {weight_text(nearest.weight)}."
    )
