from __future__ import annotations

import io
import re

from rich.console import Console

from rag_sourcebias.reports import print_report


def printed(report, width, **options):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width, **options))
    return stream.getvalue()


def test_eighty_columns_hold_six_measures(full_report):
    (header,) = [line for line in printed(full_report, 80).splitlines() if "NDCG@1" in line]
    assert header.split() == ["NDCG@1", "NDCG@3", "NDCG@5", "MAP@1", "MAP@3", "MAP@5"]


def test_rows_follow_the_published_table(full_report):
    lines = printed(full_report, 100).splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "BM25")
    assert lines[start + 1].strip().startswith("human-written")
    assert lines[start + 2].strip().startswith("LLM-written (llama-2)")
    assert lines[start + 3].strip().startswith("Relative Δ")


def test_signs_have_different_colours_and_significance_is_bold(full_report):
    text = printed(full_report, 120, force_terminal=True, color_system="256")
    assert re.search("\x1b\\[1;38;5;33m *\\+98\\.8\\*", text)
    assert "\x1b[38;5;172m  −53.7" in text


def test_verdicts_and_warnings_follow(full_report):
    text = " ".join(printed(full_report, 100).split())
    assert "• BM25 favours human text" in text
    assert "Warning: 80 or 160 queries are few" in text
