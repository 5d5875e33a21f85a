"""How fast does the dashboard answer from a log of 10 million retrievals?

    python benchmarks/monitor/dashboard.py [--quick] [--output FILE]

Every view of the API through the ASGI application, JSON included, and how fast a log is followed.
Writes benchmarks/results/dashboard.json. Exit status 1 when a view takes a second or more (never
with ``--quick``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from recorder import DAY, events_of, filled

from rag_sourcebias.core.values import environment
from rag_sourcebias.monitor.dashboard.server import create_app
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.follow import LogFollower, replay
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare, ReferenceWindow

RESULTS = Path(__file__).resolve().parent.parent / "results"
START = 1_800_000_000
END = START + 30 * DAY
VIEWS = {
    "overview": "/api/overview",
    "series, 30 days": "/api/series",
    "series, 30 days, styles": "/api/series?by=style",
    "series, 30 days, first ranks": "/api/series?measure=first",
    "series, 30 days by hour, one route": "/api/series?step=hour&label=route=r1",
    "series, a week": f"/api/series?since={END - 7 * DAY}",
    "series, a day by minute": f"/api/series?step=minute&since={END - DAY}",
    "series, an hour": f"/api/series?since={END - 3_600}",
    "alarms": "/api/alarms",
    "retrievals, newest": "/api/retrievals",
    "retrievals, newest 200 of a group at rank 1": "/api/retrievals?group=human&first=1&limit=200",
    "retrievals of an hour, one route": (
        f"/api/retrievals?since={START + DAY}&until={START + DAY + 3_600}&label=route=r1"
    ),
    "retrievals, nothing matches (one page)": "/api/retrievals?group=nobody",
}


def monitor() -> SkewMonitor:
    return SkewMonitor(
        labels=("route",), baseline=CorpusShare({"human": 0.3, "llm:a": 0.3, "llm:b": 0.3})
    )


def row(what: str, value: str, target: str = "", *, met: bool | None = None) -> dict:
    return {"what": what, "value": value, "target": target, "met": met}


async def views(path: Path) -> list[dict]:
    watched = monitor()
    watched.observe_many(events_of(20_000))
    source = DashboardSource(path, follower=LogFollower(path, watched))
    transport = httpx.ASGITransport(app=create_app(source))
    rows = []
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for what, target in VIEWS.items():
            seconds = []
            for _ in range(5):
                start = time.perf_counter()
                answer = await client.get(target)
                seconds.append(time.perf_counter() - start)
                answer.raise_for_status()
            middle, worst = statistics.median(seconds) * 1e3, max(seconds) * 1e3
            size = len(answer.content) / 1e3
            value = f"{middle:.0f} ms, worst of 5 {worst:.0f} ms, {size:.0f} kB"
            rows.append(row(what, value, "under 1 s", met=max(seconds) < 1))
        start = time.perf_counter()
        await asyncio.gather(*(client.get(target) for target in list(VIEWS.values()) * 3))
        took = time.perf_counter() - start
        rows.append(row(f"all {len(VIEWS)} views, three times, at once", f"{took:.2f} s together"))
    return rows


async def first_views(path: Path) -> list[dict]:
    """Views of 30 days of 500 sets of labels by a server that has read nothing yet."""
    rows = []
    for what, target in [item for item in VIEWS.items() if "30 days" in item[0]]:
        seconds = []
        for _ in range(5):
            transport = httpx.ASGITransport(app=create_app(DashboardSource(path)))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                start = time.perf_counter()
                (await client.get(target)).raise_for_status()
                seconds.append(time.perf_counter() - start)
        middle, worst = statistics.median(seconds) * 1e3, max(seconds) * 1e3
        value = f"{middle:.0f} ms, worst of 5 {worst:.0f} ms"
        name = f"first of {what}, 500 sets of labels"
        rows.append(row(name, value, "under 200 ms", met=middle < 200))
    return rows


def replaying(path: Path, n: int) -> dict:
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        if replay(path, SkewMonitor(labels=("route",), baseline=ReferenceWindow())) != n:
            raise SystemExit(f"not all of {n} retrievals were replayed")
        rates.append(n / (time.perf_counter() - start))
    value = f"{statistics.median(rates):,.0f} retrievals a second (median of 3)"
    return row("replaying a log, by blocks", value, "100,000", met=statistics.median(rates) >= 1e5)


def following(folder: Path, n: int) -> dict:
    filled(folder / "followed.db", n)
    live = LogFollower(folder / "followed.db", monitor(), state=folder / "state.json")
    start = time.perf_counter()
    if live.step() != n:
        raise SystemExit(f"{live.n_read} of {n} retrievals were read")
    rate = n / (time.perf_counter() - start)
    live.close()
    size = (folder / "state.json").stat().st_size / 1e3
    return row("following a log", f"{rate:,.0f} retrievals a second, state file {size:.0f} kB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    n = 200_000 if options.quick else 10_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder / "log.db", n)
        rows = [row("log", f"{n:,} retrievals over 30 days")]
        rows += asyncio.run(views(folder / "log.db"))
        rows.append(following(folder, 20_000 if options.quick else 200_000))
        filled(folder / "sets.db", 20_000 if options.quick else 1_000_000, routes=500)
        rows += asyncio.run(first_views(folder / "sets.db"))
        filled(folder / "replayed.db", few := 20_000 if options.quick else 1_000_000)
        rows.append(replaying(folder / "replayed.db", few))
    for found in rows:
        verdict = {None: "", True: "met", False: "MISSED"}[found["met"]]
        print(f"{found['what']:45} {found['value']:45} {found['target']:10} {verdict}")
    output = options.output or (None if options.quick else RESULTS / "dashboard.json")
    if output is not None:
        record = {"environment": environment(), "rows": rows}
        output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return int(not options.quick and any(found["met"] is False for found in rows))


if __name__ == "__main__":
    sys.exit(main())
