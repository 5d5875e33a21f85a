"""A real Prometheus server for the demo, with the shipped alert rules."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from rag_sourcebias.monitor.metrics import write_rules


class Prometheus:
    """Scrape some addresses until closed; ``None`` from :meth:`start` where none is installed."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process, self.url = process, url

    @classmethod
    def start(
        cls, folder: Path, targets: dict[str, str], *, port: int, every: float, program: str
    ) -> Prometheus | None:
        """Start the server; ``targets`` maps jobs to ``host:port``."""
        found = shutil.which(program)
        if found is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        write_rules(folder / "rules", overwrite=True)
        jobs = [
            {"job_name": job, "static_configs": [{"targets": [address]}]}
            for job, address in targets.items()
        ]
        config = {  # JSON is YAML
            "global": {"scrape_interval": f"{every:g}s", "evaluation_interval": f"{every:g}s"},
            "rule_files": [str((folder / "rules/alerts.yml").resolve())],
            "scrape_configs": jobs,
        }
        (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        with (folder / "prometheus.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    found,
                    f"--config.file={folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        server = cls(process, f"http://127.0.0.1:{port}")
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{server.url}/-/ready", timeout=1).close()
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
            else:
                return server
        process.kill()
        raise SystemExit(f"prometheus did not start: {folder / 'prometheus.log'}")

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._process.pid

    def ask(self, query: str) -> dict[str, float]:
        """Return the values of an expression now, by their labels."""
        text = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{text}", timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        return {
            ", ".join(f"{k}={v}" for k, v in sorted(r["metric"].items()) if k != "__name__"): float(
                r["value"][1]
            )
            for r in found
        }

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that are pending or firing."""
        with urllib.request.urlopen(f"{self.url}/api/v1/alerts", timeout=10) as answer:
            return list(json.load(answer)["data"]["alerts"])

    def close(self) -> None:
        """Stop the server."""
        self._process.terminate()
        self._process.wait(20)
