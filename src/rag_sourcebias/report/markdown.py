"""The whole report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rag_sourcebias.report import facts, tables
from rag_sourcebias.report.explain import how_to_read
from rag_sourcebias.report.format import MISSING, number
from rag_sourcebias.report.headline import headline
from rag_sourcebias.report.texts import SECTIONS, star_note
from rag_sourcebias.report.verdicts import verdicts
from rag_sourcebias.report.view import assumptions, caveats, label, refusals
from rag_sourcebias.types.reports import SkewReport

__all__ = ["to_markdown"]

# Names come from users' data: none may start a link, a tag or a table cell.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def to_markdown(report: SkewReport) -> str:
    """Return the report as GitHub-flavoured Markdown, ending in a newline."""
    blocks = [
        f"# Source bias report: {_escape(report.data.name)}",
        f"**{_escape(headline(report))}**",
    ]
    blocks += [f"> **Note:** {_escape(w)}" for w in report.warnings]
    blocks += ["## Verdicts", _bullets(v.sentence for v in verdicts(report))]
    blocks += ["## All numbers", _table(tables.cells_table(report)), _escape(star_note(report))]
    blocks += [_bullets(f"{who}: {why}" for who, why in refusals(report))]
    for name, table in (
        ("twins", tables.twins_table(report)),
        ("length-matched", tables.variant_table(report, "length-matched")),
        ("exact", tables.variant_table(report, "exact")),
        ("sole-corpus", tables.sole_table(report)),
        ("exposure", tables.exposure_table(report)),
    ):
        if table.rows:
            title, text = SECTIONS[name]
            blocks += [f"## {title}", _escape(text), _table(table)]
            if name == "exposure":
                blocks.append(_bullets(_awrf(report)))
    blocks += ["## How to read this"]
    blocks += [f"**{_escape(q)}** {_escape(a)}" for q, a in how_to_read(report)]
    blocks += ["## Assumptions"]
    blocks += [_bullets(f"{a} ({'; '.join(where)})" for a, where in assumptions(report).items())]
    blocks += ["## Caveats"]
    blocks += [
        _bullets(f"{who}: {what}" if who else what for who, what in caveats(report))
        or "None recorded."
    ]
    blocks += ["## Data", _table(facts.data_table(report))]
    blocks += ["## Settings and versions"]
    blocks += [
        _table(make(report))
        for make in (facts.config_table, facts.settings_table, facts.environment_table)
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _awrf(report: SkewReport) -> Iterable[str]:
    for system in report.systems:
        if system.awrf is not None:
            yield f"{label(system)}: AWRF {number(system.awrf, digits=3)}"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(item)}" for item in items)


def _table(table: tables.Table) -> str:
    if not table.rows:
        return ""
    # Words to the left, numbers to the right.
    rule = [
        "---" if i < table.n_heads or len(table.columns) == 2 else "--:"
        for i in range(len(table.columns))
    ]
    lines = [[_escape(c) or " " for c in table.columns], rule]
    lines += [[_escape(c) or MISSING for c in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
