"""Progress where no bar can be drawn: lines of a log, now and then."""

from __future__ import annotations

import io
import re
import time
from contextlib import redirect_stderr

import pytest

from rag_sourcebias.core import progress
from rag_sourcebias.terminal.console import stages


def log_of(monkeypatch: pytest.MonkeyPatch, *, every: float, total: int | None) -> list[str]:
    monkeypatch.setattr(progress, "LOG_SECONDS", every)
    text = io.StringIO()
    with redirect_stderr(text), stages() as shown:
        shown.begin("encoding [red]")
        for done in range(1, 13):
            time.sleep(0.05)
            shown.advance(done, total)
    return [line for line in text.getvalue().splitlines() if line.startswith("  encoding [red]: ")]


def test_a_log_says_how_much_is_done_and_how_long_the_rest_takes(monkeypatch) -> None:
    lines = log_of(monkeypatch, every=0.1, total=2_000)
    assert len(lines) >= 3
    found = re.fullmatch(
        r"  encoding \[red\]: (\d+) of 2,000, 0:00:0\d so far, about (\d:\d\d:\d\d) left", lines[-1]
    )
    assert found, lines
    assert 3 <= int(found[1]) <= 12
    minutes, seconds = map(int, found[2].split(":")[1:])
    assert 60 <= 60 * minutes + seconds <= 600  # 2,000 steps of 50 ms and more


def test_a_stage_of_unknown_size_shows_that_it_lives(monkeypatch) -> None:
    lines = log_of(monkeypatch, every=0.1, total=None)
    assert "  encoding [red]: 0:00:00 so far" in lines


def test_a_short_job_says_nothing_between(monkeypatch) -> None:
    assert log_of(monkeypatch, every=60, total=2_000) == []
