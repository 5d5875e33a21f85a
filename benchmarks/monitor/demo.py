"""An application under load, ``monitor serve`` beside it, and Prometheus scraping both.

    python benchmarks/monitor/demo.py [--seconds 600] [--rate 20] [--folder demo]
        [--prometheus PROGRAM] [--output FILE]

Three processes: demo_app.py (LangChain, Chroma, a real encoder; it logs every retrieval and
watches itself), the dashboard (``rag-sourcebias monitor serve``), which follows the log, and
Prometheus where it is installed (Debian's package ``prometheus``). In the end the three are held
against each other. Writes the figures to ``--output``; the log stays in the folder, for
``rag-sourcebias monitor serve``. Exit status 1 when the three do not agree.
"""

from __future__ import annotations

import argparse
import json
import platform
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from demo_prometheus import Prometheus

from rag_sourcebias._version import __version__
from rag_sourcebias.observe.log.reading import log_summary

_VIEWS = {
    "overview": "/api/overview",
    "series": "/api/series?by=source",
    "alarms": "/api/alarms",
    "retrievals": "/api/retrievals?limit=50",
    "metrics": "/metrics",
    "page": "/",
}


def free_ports(n: int) -> list[int]:
    """Ports that nobody listens at now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def wait_for(url: str, process: subprocess.Popen[str], seconds: float = 60.0) -> None:
    """Wait until a server answers."""
    for _ in range(int(seconds / 0.2)):
        try:
            get(url)
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"the server ended with {process.returncode}") from None
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"{url} does not answer")


def usage(pid: int) -> tuple[float, float]:
    """CPU seconds and resident megabytes of a process."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return (int(stat[11]) + int(stat[12])) / 100, pages * 4096 / 1e6


def watch(base: str, pids: dict[str, int], seconds: float) -> dict[str, Any]:
    """Ask for every view again and again; note times, memory and processor time."""
    times: dict[str, list[float]] = {name: [] for name in _VIEWS}
    memory: dict[str, list[float]] = {name: [] for name in pids}
    started = {name: usage(pid)[0] for name, pid in pids.items()}
    began = time.monotonic()
    said = 0
    while (now := time.monotonic() - began) < seconds:
        for name, path in _VIEWS.items():
            before = time.perf_counter()
            found = get(base + path)
            times[name].append(time.perf_counter() - before)
            if name == "overview":
                said = _say(json.loads(found), said)
        for name, pid in pids.items():
            memory[name].append(usage(pid)[1])
        time.sleep(min(2.0, max(seconds - now, 0)))
    cpu = {name: usage(pid)[0] - started[name] for name, pid in pids.items()}
    return {
        "views_ms": {
            name: {"median": 1e3 * float(np.median(t)), "worst": 1e3 * max(t)}
            for name, t in times.items()
        },
        "megabytes": {
            name: {"first": m[0], "half": m[len(m) // 2], "last": m[-1]}
            for name, m in memory.items()
        },
        "cpu_share": {name: c / seconds for name, c in cpu.items()},
    }


def _say(overview: dict[str, Any], said: int) -> int:
    alarms = int(overview["alarms_active"])
    if alarms > said:
        n = overview["log"]["n_written"]
        print(f"  the dashboard shows {alarms} active alarm(s) after {n:,} retrievals", flush=True)
    return max(alarms, said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=20.0, help="searches a second")
    parser.add_argument("--reference", type=int, default=1_000, help="size of the frozen window")
    parser.add_argument("--folder", type=Path, default=Path("monitor-demo"))
    parser.add_argument("--prometheus", default="prometheus", help="program to start")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "retrievals.db"
    for old in folder.glob("retrievals.db*"):
        old.unlink()
    app_port, serve_port, prometheus_port = free_ports(3)
    base = f"http://127.0.0.1:{serve_port}"
    here = Path(__file__).parent
    application = subprocess.Popen(
        [
            sys.executable,
            str(here / "demo_app.py"),
            *("--log", str(log), "--seconds", f"{options.seconds:g}"),
            *("--rate", f"{options.rate:g}"),
            *("--reference", str(options.reference), "--metrics-port", str(app_port)),
            *("--figures", str(folder / "application.json")),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    serve = subprocess.Popen(
        [
            *(sys.executable, "-m", "rag_sourcebias", "monitor", "serve", str(log)),
            *("--port", str(serve_port), "--baseline", f"reference:{options.reference}"),
        ],
        text=True,
    )
    prometheus: Prometheus | None = None
    try:
        print("the application indexes the sample …", flush=True)
        assert application.stdout is not None
        if application.stdout.readline().strip() != "ready":
            raise SystemExit("the application did not start")
        wait_for(f"{base}/healthz", serve)
        prometheus = Prometheus.start(
            folder / "prometheus",
            {"application": f"127.0.0.1:{app_port}", "dashboard": f"127.0.0.1:{serve_port}"},
            port=prometheus_port,
            every=1.0 if options.seconds < 120 else 5.0,
            program=options.prometheus,
        )
        with_it = "Prometheus scrapes both" if prometheus else "Prometheus is not installed"
        print(f"  application under load; dashboard at {base}; {with_it}", flush=True)
        pids = {"application": application.pid, "dashboard": serve.pid}
        if prometheus is not None:
            pids["prometheus"] = prometheus.pid
        figures = watch(base, pids, options.seconds)
        for line in application.stdout:
            print(f"  application: {line.strip()}", flush=True)
            if line.strip() == "done":
                break
        figures |= compare(base, folder, log, prometheus)
    finally:
        if application.stdin is not None and application.poll() is None:
            application.stdin.write("\n")
            application.stdin.close()
        application.wait(30)
        if prometheus is not None:
            prometheus.close()
        serve.terminate()
        serve.wait(30)
    figures["environment"] = {
        "rag-sourcebias": __version__,
        "python": platform.python_version(),
        "seconds": options.seconds,
        "searches_a_second": options.rate,
    }
    if options.output is not None:
        options.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    report(figures, log)
    sys.exit(0 if figures["agree"] else 1)


def compare(base: str, folder: Path, log: Path, prometheus: Prometheus | None) -> dict[str, Any]:
    """Hold the application's own count against the log, the dashboard and Prometheus."""
    application = json.loads((folder / "application.json").read_text(encoding="utf-8"))
    written = log_summary(log).n_written
    time.sleep(12.0 if prometheus is not None else 3.0)  # two scrapes; the follower's next look
    overview = json.loads(get(f"{base}/api/overview"))
    alarms = json.loads(get(f"{base}/api/alarms"))["alarms"]
    found: dict[str, Any] = {
        "application": application,
        "log": {"written": written, "bytes": overview["log"]["size_bytes"]},
        "dashboard": {
            "read": overview["follower"]["n_read"],
            "exposure": {
                g["group"]: g["share"]
                for s in overview["monitor"]["snapshots"]
                for g in s["groups"]
                if g["measure"] == "exposure"
            },
            "alarms": alarms,
        },
    }
    counts = {application["searches"], written, overview["follower"]["n_read"]}
    if prometheus is not None:
        scraped = prometheus.ask("rag_sourcebias_retrievals_total")
        found["prometheus"] = {
            "retrievals": scraped,
            "up": prometheus.ask("up"),
            "alarm_active": prometheus.ask("rag_sourcebias_alarm_active"),
            "alerts": [
                {"name": a["labels"]["alertname"], "state": a["state"]} for a in prometheus.alerts()
            ],
        }
        counts |= {int(n) for n in scraped.values()}
    found["agree"] = len(counts) == 1
    return found


def report(figures: dict[str, Any], log: Path) -> None:
    """Print what was found."""
    application, dashboard = figures["application"], figures["dashboard"]
    print(
        f"{application['searches']:,} searches "
        f"(p50 {1e3 * application['seconds_each']['p50']:.1f} ms), "
        f"{figures['log']['written']:,} logged, "
        f"{dashboard['read']:,} read by the dashboard, lost {application['lost']}"
    )
    for name, scraped in figures.get("prometheus", {}).get("retrievals", {}).items():
        print(f"Prometheus has {scraped:,.0f} ({name})")
    for alarm in dashboard["alarms"][::-1]:
        print(f"alarm after {alarm['n']:,}: {alarm['message']}")
    for alert in figures.get("prometheus", {}).get("alerts", []):
        print(f"alert of Prometheus: {alert['name']} ({alert['state']})")
    worst = max(view["worst"] for view in figures["views_ms"].values())
    print(f"slowest answer of the dashboard: {worst:.0f} ms")
    told = "application, log, dashboard" + (" and Prometheus" if "prometheus" in figures else "")
    print(f"{told} agree" if figures["agree"] else "NO AGREEMENT")
    print(f"look at it again with: rag-sourcebias monitor serve {log}")


if __name__ == "__main__":
    main()
