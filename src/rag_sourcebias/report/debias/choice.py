"""Which method does best, where it meets the criteria, and whether it transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.report.debias.names import called, changed_systems, data_name, method_of
from rag_sourcebias.report.debias.skew_words import worse
from rag_sourcebias.report.debias.verdicts import DebiasVerdict, significant, verdicts_of
from rag_sourcebias.report.format import count, delta, join
from rag_sourcebias.types.debias_report import DebiasReport

__all__ = ["Standing", "best_system", "choice_sentence", "standings", "transfer_sentence"]

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One changed system over all data sets.

    Parameters
    ----------
    met : tuple of DebiasVerdict
        Where it meets all criteria.
    distance : float
        Mean |Relative Δ − target| after the change; infinite where nothing was measured.
    """

    system: str
    verdicts: tuple[DebiasVerdict, ...]
    met: tuple[DebiasVerdict, ...]
    distance: float


def standings(report: DebiasReport) -> tuple[Standing, ...]:
    """Return every changed system, the best first.

    Best is who meets all criteria on most data sets, then who does so beyond doubt on most, then
    who comes nearest to the target.
    """
    found = []
    for system in changed_systems(report):
        of_system = verdicts_of(report, system)
        left = [
            abs(v.skew.after.estimate - report.config.target)
            for v in of_system
            if v.skew.after is not None
        ]
        found.append(
            Standing(
                system=system,
                verdicts=of_system,
                met=tuple(v for v in of_system if v.met),
                distance=sum(left) / len(left) if left else float("inf"),
            )
        )
    return tuple(
        sorted(found, key=lambda s: (-len(s.met), -sum(v.proven for v in s.met), s.distance))
    )


def best_system(report: DebiasReport) -> Standing | None:
    """Return the best changed system, None where there is none."""
    found = standings(report)
    return found[0] if found else None


def _where(report: DebiasReport, found: Sequence[DebiasVerdict]) -> str:
    if len(found) > _NAMED:
        return f"{count(len(found))} of {count(len(report.datasets))} data sets"
    return join([called(data_name(report, v.dataset)) for v in found])


def choice_sentence(report: DebiasReport) -> str:
    """Return which changed system meets all criteria, and where."""
    found = standings(report)
    if not found:
        return "No changed system was compared."
    first, n = found[0], len(report.datasets)
    name = called(first.system)
    anywhere = "" if n == 1 else " on any data set" if n > 2 else " on either data set"
    if not first.met:
        if len(found) == 1:
            return f"{name} does not meet all criteria{anywhere}."
        return (
            f"None of {len(found)} changed systems meets all criteria{anywhere}; {name} comes "
            "nearest to the target."
        )
    text = f"{name} meets all criteria on {_where(report, first.met)}"
    if len(first.met) < n and len(first.met) <= _NAMED:
        text += f" ({len(first.met)} of {n} data sets)"
    doubtful = [v for v in first.met if not v.proven]
    if doubtful:
        where = "" if len(first.met) == 1 else f" on {_where(report, doubtful)}"
        text += f", though{where} only by its estimates: {_doubts(doubtful)}"
    if len(found) == 1:
        return f"{text}."
    others = [s for s in found[1:] if s.met]
    if not others:
        return f"Of {len(found)} changed systems only {text}."
    clauses = [_also(report, s) for s in others[:_NAMED]]
    if len(others) > _NAMED:
        clauses.append(f"{len(others) - _NAMED} more elsewhere")
    verb = "does" if len(others) == 1 else "do"
    return f"Of {len(found)} changed systems {text}; so {verb} {join(clauses)}."


def _also(report: DebiasReport, standing: Standing) -> str:
    text = f"{called(standing.system)} on {_where(report, standing.met)}"
    sure = all(v.proven for v in standing.met)
    return text if sure else f"{text} (by its estimates)"


def _doubts(found: Sequence[DebiasVerdict]) -> str:
    parts = []
    if any(v.kind == "uncertain" for v in found):
        parts.append("the interval of Relative Δ is wide")
    if any(q.kind != "kept" for v in found for q in v.quality):
        parts.append("some loss of quality is not excluded")
    return join(parts)


def transfer_sentence(report: DebiasReport, standing: Standing) -> str:
    """Return whether a system does on other data what it does on those it was fitted on."""
    method = method_of(report, standing.system)
    tests = [v for v in standing.verdicts if v.role == "transfer"]
    name = called(standing.system)
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
    good = [v for v in tests if v.met]
    bad = [v for v in tests if not v.met]
    if not bad:
        sure = all(v.proven for v in good)
        start = "transfers to" if sure else "appears to transfer to"
        tail = "" if sure else f", but {_doubts([v for v in good if not v.proven])}"
        return f"{name} {start} {_where(report, good)}{tail}."
    failed = f"{_where(report, bad)} ({_failures(report, bad)})"
    if good:
        return f"{name} meets the criteria on new data on {_where(report, good)}, not on {failed}."
    return f"{name} is not shown to transfer: it fails on {failed}."


def _failures(report: DebiasReport, found: Sequence[DebiasVerdict]) -> str:
    """Say from where to where Relative Δ went in failed transfer tests."""
    parts = []
    for v in found[:_NAMED]:
        before, after = v.skew.before, v.skew.after
        if after is None:
            parts.append("not measured")
            continue
        text = delta(after.estimate)
        if before is not None:
            text = f"{delta(before.estimate)} to {text}"
        parts.append(f"{text}, {_shortfall(report, v)}")
    return f"Relative Δ {'; '.join(parts)}"


def _shortfall(report: DebiasReport, verdict: DebiasVerdict) -> str:
    """Say in a few words why the criteria are not met."""
    if verdict.kind in ("reached", "uncertain"):
        return "but quality falls"
    if verdict.kind == "close":
        return "near, but a rest is measurable"
    if worse(report, verdict):
        return "worse than before"
    if not significant(report, verdict.skew):
        return "not a significant change"
    return "past the target" if verdict.kind == "overcorrected" else "nearer, but not near enough"
