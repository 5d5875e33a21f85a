from __future__ import annotations

import io

from judged_reports import answers, rankings, single
from rich.console import Console

from rag_sourcebias.report.render import print_report


def printed(report, width=2000):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_one_line_per_mean():
    text = printed(answers())
    lines = [line for line in text.splitlines() if line.startswith("• correctness, ")]
    for line, mean in zip(lines, answers().means, strict=True):
        i = mean.interval
        start = f"• correctness, {mean.system}: {i.estimate:.3f} [{i.lower:.3f}, {i.upper:.3f}]"
        assert line.startswith(f"{start} (95%, 80 labelled + 220 judged, judge alone ")
        assert f"{mean.judge_alone:.3f}, r = " in line
    assert "The judge saves at least" in lines[-1] + lines[-2]
    assert any(line.endswith("This judge is useless: use labels alone.") for line in lines)


def test_comparisons_queries_and_warnings_follow():
    text = printed(rankings())
    assert text.count("• ") == len(rankings().per_query) + len(rankings().means)
    assert ("cannot tell" in text) or ("higher" in text)
    assert "Warning: helpfulness: the judge is useless" in printed(single("noise"))
    assert "of the pool" in printed(single(target="pool"))
    assert "on its own scale" in printed(single("scale"))
