from __future__ import annotations

import io
import re

from rich.console import Console

from rag_sourcebias.report.render import print_report


def printed(report, width, **options):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width, **options))
    return stream.getvalue()


def test_eighty_columns_hold_all_scores(full_report):
    lines = printed(full_report, 80).splitlines()
    (header,) = [line for line in lines if line.startswith("measure")]
    assert header.split() == ["measure", "human", "LLM", "centred", "Δ", "*"]
    assert len([line for line in lines if line.strip().startswith("NDCG@1")]) == 3


def test_signs_have_different_colours_and_significance_is_bold(full_report):
    text = printed(full_report, 120, force_terminal=True, color_system="256")
    assert re.search("\x1b\\[1;38;5;33m *\\+98\\.8", text)
    assert re.search("\x1b\\[38;5;172m *−53\\.7", text)


def test_verdicts_and_warnings_follow(full_report):
    text = " ".join(printed(full_report, 100).split())
    assert "• BM25: Favours human text" in text
    assert "Warning: 80 queries are few" in text
