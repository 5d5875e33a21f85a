"""Four weeks of traffic in fast motion, in a browser: what the first screen says at each moment.

``DASHBOARD_PICTURES=FOLDER`` keeps what is seen; docs/images/dashboard.png is the twentieth day.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from dashboard_browser import Browser, chromium

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.dashboard.server import DashboardServer
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import ReferenceWindow
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog

pytestmark = pytest.mark.server
HUMAN, LLM, DAY = DocTags(source="human"), DocTags(source="llm:x"), 86_400.0
N = 13_500
START = 1_800_000_000.0 // DAY * DAY


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no chromium or google-chrome on this machine")
    found = Browser(program, tmp_path)
    try:
        found.connect()
        found.size(1280, 900)
        yield found
    finally:
        found.close()


def traffic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sessions of ten, a daily cycle, and 20 points less from day 18 to day 21."""
    times = np.sort(rng.random(N)) * 27 * DAY
    chance = np.repeat(rng.beta(6, 6, N // 10), 10) + 0.05 * np.sin(2 * np.pi * times / DAY)
    chance -= 0.2 * ((times >= 18 * DAY) & (times < 21 * DAY))
    return times, rng.random((N, 10)) < chance[:, None]


def test_a_person_can_say_what_happened(browser: Browser, tmp_path: Path) -> None:
    times, human = traffic(np.random.default_rng(5))
    held = {"human": 0.5, "llm:x": 0.5}
    log, now, read, said, n_read = tmp_path / "log.db", [START], 0, {}, {}
    monitor = SkewMonitor(baseline=ReferenceWindow(), store=lambda: held, clock=lambda: now[0])
    follower = LogFollower(log, monitor)
    server = DashboardServer(DashboardSource(log, follower=follower))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with EventLog(log) as writer:
            for day in (0, 3, 17, 20, 27):
                while read < len(times) and times[read] < day * DAY:
                    tags = tuple(HUMAN if one else LLM for one in human[read])
                    ranked = RankedList(query_id="", doc_ids=("",) * 10)
                    event = RetrievalEvent(ranked=ranked, tags=tags)
                    writer.record(event, at=START + float(times[read]))
                    read += 1
                n_read[day] = read
                assert writer.flush(60)
                now[0] = START + day * DAY
                follower.step()
                sleep(1.1)  # the page shows a state that is at most a second old
                browser.open(f"{server.url}#range=all")
                browser.wait("!document.body.classList.contains('waiting')")
                ready = "document.querySelectorAll('#over-time canvas').length === 2"
                browser.wait(ready if day else "true")
                said[day] = str(browser.run("document.getElementById('headline').innerText"))
                detail = str(browser.run("document.getElementById('detail').innerText"))
                rows = browser.run("document.querySelectorAll('#groups tr th[scope=row]').length")
                if day == 20:
                    assert "what the store holds +0.0" in detail
                    assert "Next: ranking changed: look at what was deployed" in detail
                if folder := os.environ.get("DASHBOARD_PICTURES"):
                    browser.picture(Path(folder) / f"day-{day}.png")
                assert rows == bool(day)  # the other source is the rest
                assert browser.complaints == []
    finally:
        server.stop()
        thread.join()
    assert said[0] == "No retrieval was logged yet."
    for day in (3, 17, 27):  # at last without the shift that has ended
        found = re.match(
            ("No alarm" if day > 14 else "Nothing is tested yet")
            + r"\. Human documents hold ([\d.]+).% of the exposure over (the )?([\d,]+)",
            said[day],
        )
        assert found is not None
        assert abs(float(found[1]) - 50) < 1.5
        n = int(found[3].replace(",", ""))
        assert n == n_read[day] if day < 27 else 2_000 < n < 3_200
    assert re.fullmatch(
        r"Alarm\. Human documents went down from (49|50)\.\d.% to (2|3)\d\.\d.% \[.*\] of the "
        r"exposure since [12] Feb 2027 \d\d:\d\d\.",
        said[20],
    )
    rules = [alarm.rule for alarm in monitor.alarms or follower.monitor.alarms]
    assert rules == ["shift", "resolved"]
