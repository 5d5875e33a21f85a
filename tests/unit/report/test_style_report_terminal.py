from __future__ import annotations

import io

from rich.console import Console
from style_reports import STYLES, full_report

from rag_sourcebias.report.render import print_report
from rag_sourcebias.style.page import headline


def printed(report, width=400):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_headline_ranks_findings_and_warnings():
    report = full_report()
    text = printed(report)
    assert headline(report) in text
    for at, style in enumerate(STYLES[1:], start=1):
        name = f"style {style}" if style.isdigit() else style
        line = next(row for row in text.splitlines() if row.strip().startswith(name))
        for system in report.systems:
            found = {p.first: p.p_adjusted < 0.05 for p in system.rows[0].against_original}
            star = "*" if found[style] else ""
            assert f"{system.average_ranks[0][at]:.1f}{star} [" in line
    assert f"{report.systems[0].rows[0].unfairness.score:.2f} [" in text
    assert f"{report.systems[0].mean_unfairness.estimate:.2f} [" in text
    assert "Warning: 60 queries are few" in text
