"""The whole report in one or two sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag_sourcebias.report.format import count, join, shorten
from rag_sourcebias.report.style.names import original_text, style_list, style_name
from rag_sourcebias.report.style.verdicts import StyleVerdict, style_verdicts
from rag_sourcebias.report.style.wording import chance_sentence, predicate, score_with
from rag_sourcebias.types.style_parts import StyleCode
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["headline"]

_NAMED = 3  # systems that are named one by one
_NAME = 48


def headline(report: StyleReport) -> str:
    """Return what a reader in a hurry should take away, no more certain than it is."""
    found = style_verdicts(report)
    if not any(v.row for v in found):
        return "No system was measured."
    n = report.data.n_queries
    start = f"Over {count(n)} {'query' if n == 1 else 'queries'}{_wording(report)}"
    if len(found) > _NAMED:
        return f"{start}, {_tally(report, found)}. {_range(found)}"
    clauses = "; ".join(
        f"{shorten(v.system.name, _NAME)} {predicate(report, v.finding)}" for v in found
    )
    if len(found) > 1:
        return f"{start}, {clauses}. {_range(found)}"
    (only,) = found
    if only.row is None or only.finding is None or only.finding.code is StyleCode.TIED:
        return f"{start}, {clauses}."
    return f"{start}, {clauses}. {chance_sentence(report, only.row)}"


def _wording(report: StyleReport) -> str:
    """Say how the queries were written, where that was varied."""
    style = report.config.original_query
    if len(report.data.query_styles) < 2 or style not in report.data.query_styles:
        return ""
    return " in their original wording" if style == "original" else f" in {style_name(style)}"


def _tally(report: StyleReport, found: Sequence[StyleVerdict]) -> str:
    """Say of each style how many systems rank it above or below the original."""
    total, base, parts = len(found), original_text(report), []
    findings = [v.finding for v in found if v.finding is not None]
    above = Counter(style for f in findings for style in f.favoured)
    below = Counter(style for f in findings for style in f.silenced)
    for counts, where in ((above, "above"), (below, "below")):
        by_number: dict[int, list[str]] = {}
        for style in report.data.doc_styles:
            if counts[style]:
                by_number.setdefault(counts[style], []).append(style)
        named = [
            f"{style_list(styles)} by {'all' if number == total else number}"
            for number, styles in sorted(by_number.items(), reverse=True)[:_NAMED]
        ]
        if named:
            parts.append(f"{where} {base}: {', '.join(named)}")
    if not parts:
        return f"none of {total} systems ranks a style significantly above or below {base}"
    return f"{total} systems rank styles significantly {'; '.join(parts)}"


def _range(found: Sequence[StyleVerdict]) -> str:
    """Compare unfairness under the original query style, with what chance alone gives."""
    known = sorted(
        ((v.row, v.system.name) for v in found if v.row is not None),
        key=lambda pair: pair[0].unfairness.score,
    )
    nulls = [row.unfairness.null_expectation for row, _ in known]
    texts = [
        f"{score_with(row.unfairness.score, row.unfairness_interval)} for {shorten(name, _NAME)}"
        for row, name in (known if len(known) <= _NAMED else (known[0], known[-1]))
    ]
    span = join(texts) if len(known) <= _NAMED else f"from {texts[0]} to {texts[-1]}"
    low, high = score_with(min(nulls), None), score_with(max(nulls), None)
    chance = low if low == high else f"{low} to {high}"
    return f"Unfairness is {span}; chance alone would give {chance}."
