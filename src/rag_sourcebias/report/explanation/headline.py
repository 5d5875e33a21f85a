"""The page in a few sentences: what distinguishes the sources, what is open, what is missing."""

from __future__ import annotations

from rag_sourcebias.report.explanation.findings import Finding, findings, unmeasured
from rag_sourcebias.report.explanation.names import encoder_name, of_source
from rag_sourcebias.report.format import count, join
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation

__all__ = ["ASSOCIATION", "headline"]

ASSOCIATION = "These are associations: none is shown to cause a preference"
_PERPLEXITY = "; a lower perplexity is a property of rewrites, not an explanation"
_SCORES = "scores"


def headline(report: ExplainReport) -> str:
    """Return what the report says, in plain sentences."""
    if not report.sources:
        return "No source was compared."
    if len(report.sources) == 1:
        sentences = _one(report, report.sources[0])
    else:
        sentences = [_short(report, s) for s in report.sources]
    lower = any(p.gap.gap.upper < 0 for s in report.sources for p in s.perplexity)
    return " ".join([*sentences, f"{ASSOCIATION}{_PERPLEXITY if lower else ''}."])


def _one(report: ExplainReport, explained: SourceExplanation) -> list[str]:
    found = findings(report, explained)
    other, base = of_source(explained.source), of_source(report.config.baseline_source)
    scores = _scores(report, found, other=other, base=base)
    sentences = [scores]
    shown = [f.brief for f in found if f.standing == "established" and f.topic != _SCORES]
    start = f"In {count(explained.n_pairs)} pairs"
    if shown:
        who = "the former" if scores else f"{other} versions, beside {base} ones,"
        last = f"{'; '.join(shown[:-1])}; and {shown[-1]}" if len(shown) > 1 else shown[0]
        sentences.append(f"{start} {who} {last}.")
    else:
        which = "the two" if scores else f"{other} from {base} versions"
        sentences.append(f"{start} nothing that was measured distinguishes {which} beyond doubt.")
    sentences += _rest(report, explained, found)
    return [s for s in sentences if s]


def _scores(report: ExplainReport, found: tuple[Finding, ...], *, other: str, base: str) -> str:
    gap = next((f for f in found if f.topic == _SCORES), None)
    if gap is None:
        return ""
    name = encoder_name(report)
    if gap.standing == "open":
        return (
            f"That {name} scores {other} and {base} versions differently is not established "
            f"({gap.brief})."
        )
    return f"{name} scores {other} versions {gap.brief} than {base} ones."


def _rest(
    report: ExplainReport, explained: SourceExplanation, found: tuple[Finding, ...]
) -> list[str]:
    open_ = [f.topic for f in found if f.standing == "open" and f.topic != _SCORES]
    missing = unmeasured(report, explained)
    sentences = []
    if open_:
        sentences.append(f"Not established: {join(open_)}.")
    if missing:
        parts = "; ".join(f"{names} ({why})" for names, why in missing)
        sentences.append(f"Not computed: {parts}.")
    return sentences


def _short(report: ExplainReport, explained: SourceExplanation) -> str:
    found = findings(report, explained)
    base = of_source(report.config.baseline_source)
    shown = [f for f in found if f.standing == "established" and f.topic != _SCORES]
    differ = f"in {join([f.topic for f in shown])}" if shown else "in nothing that is established"
    text = f"{of_source(explained.source)} versions "
    scores = next((f for f in found if f.topic == _SCORES and f.standing == "established"), None)
    if scores is None:
        text += f"differ from {base} ones {differ}"
    else:
        text += f"score {scores.brief} than {base} ones and differ from them {differ}"
    open_ = [f.topic for f in found if f.standing == "open"]
    if open_:
        text += f"; not established: {join(open_)}"
    missing = [names for names, _ in unmeasured(report, explained)]
    if missing:
        text += f"; not computed: {join(missing)}"
    return f"{text}."
