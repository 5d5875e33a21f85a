"""The whole report in one or two sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag_sourcebias.report.format import count, join, shorten
from rag_sourcebias.report.style.names import original_text, style_list, style_name
from rag_sourcebias.report.style.verdicts import StyleVerdict, style_verdicts
from rag_sourcebias.report.style.wording import chance_sentence, listed, score_with
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
    if len(found) == 1:
        verdict = found[0]
        text = f"{start}, {_who(found)} {_predicate(report, verdict, one=True)}."
        if verdict.row is None or verdict.kind == "tied":
            return text
        return f"{text} {chance_sentence(report, verdict.row)}"
    first = _tally(report, found) if len(found) > _NAMED else _clauses(report, found)
    return f"{start}, {first}. {_range(found)}"


def _wording(report: StyleReport) -> str:
    """Say how the queries were written, where that was varied."""
    style = report.config.original_query
    if len(report.data.query_styles) < 2 or style not in report.data.query_styles:
        return ""
    return " in their original wording" if style == "original" else f" in {style_name(style)}"


def _clauses(report: StyleReport, found: Sequence[StyleVerdict]) -> str:
    groups: dict[str, list[StyleVerdict]] = {}
    for verdict in found:
        groups.setdefault(_predicate(report, verdict, one=True), []).append(verdict)
    return "; ".join(
        f"{_who(group)} {_predicate(report, group[0], one=len(group) == 1)}"
        for group in groups.values()
    )


def _who(found: Sequence[StyleVerdict]) -> str:
    return join([shorten(v.system.name, _NAME) for v in found])


def _predicate(report: StyleReport, verdict: StyleVerdict, *, one: bool) -> str:
    base, s = original_text(report), "s" if one else ""
    if verdict.kind == "differs":
        parts: list[str] = []
        for found, where in ((verdict.favoured, "above"), (verdict.silenced, "below")):
            if found:
                parts.append(f"{listed(report, found)} {where} {'it' if parts else base}")
        return f"rank{s} {' and '.join(parts)}"
    return {
        "slight": f"show{s} only slight differences between styles and {base}",
        "uneven": (
            f"treat{s} styles differently, though none clearly differs from {base}"
            if verdict.row is not None and verdict.row.against_original
            else f"treat{s} styles differently"
        ),
        "none": f"show{s} no significant preference for or against a style",
        "few": "cannot be judged: there are too few queries",
        "tied": f"rank{s} all styles alike",
        "empty": "could not be measured",
    }[verdict.kind]


def _tally(report: StyleReport, found: Sequence[StyleVerdict]) -> str:
    """Say of each style how many systems rank it above or below the original."""
    total, base, parts = len(found), original_text(report), []
    above = Counter(c.style for v in found for c in v.favoured)
    below = Counter(c.style for v in found for c in v.silenced)
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
