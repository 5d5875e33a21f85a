"""``monitor serve``: the dashboard beside a running application."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from rag_sourcebias.adapters import metrics_factory
from rag_sourcebias.cli import monitor_options as opt
from rag_sourcebias.cli.checks import require_writable_file
from rag_sourcebias.cli.console import err
from rag_sourcebias.cli.monitor_settings import Watch, build_monitor
from rag_sourcebias.cli.spread import spread
from rag_sourcebias.cli.wording import as_options
from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.canary.points import read_points
from rag_sourcebias.monitor.dashboard.limits import Limits
from rag_sourcebias.monitor.dashboard.server import DashboardServer
from rag_sourcebias.monitor.dashboard.source import DashboardSource
from rag_sourcebias.monitor.follow import LogFollower
from rag_sourcebias.monitor.log.reading import LogSummary, log_summary
from rag_sourcebias.monitor.sinks import LoggingSink, SinkGroup
from rag_sourcebias.monitor.webhook import WebhookSink
from rag_sourcebias.types.canary import CanaryPoint

__all__ = ["serve"]

_TOKEN, _SECRET = "RAG_SOURCEBIAS_TOKEN", "RAG_SOURCEBIAS_WEBHOOK_SECRET"

_OPTIONS = {"start anew": "say --start-anew", "another state file": "another file as --state"}


@spread
def serve(
    log: opt.Log,
    *,
    watch: Watch,
    host: opt.Host = "127.0.0.1",
    port: opt.Port = 8321,
    token_file: opt.TokenFile = None,
    allowed_host: opt.AllowedHosts = None,
    connections_per_address: opt.PerAddress = 128,
    state: opt.State = None,
    start_anew: opt.StartAnew = False,
    webhook: opt.Webhook = None,
    canary: opt.Canary = None,
) -> None:
    """Follow a log and show it: shares over time, alarms, single retrievals, metrics.

    The log may be written by other processes meanwhile, or be there only later. Nothing is written
    but the file of the state.

    [bold]Examples[/]

        rag-sourcebias monitor serve retrievals.db --baseline store:chroma:db

        rag-sourcebias monitor serve retrievals.db --changes 10000 --webhook https://example.com/x

        rag-sourcebias monitor serve retrievals.db --host 0.0.0.0 --token-file token.txt
    """
    if log.exists():
        log_summary(log)  # says what is wrong with it
    monitor = build_monitor(watch)
    kept = state or log.with_name(f"{log.name}.monitor.json")
    require_writable_file("state", kept)
    token = _token(token_file)
    with ExitStack() as stack:
        sinks = SinkGroup(LoggingSink())
        stack.callback(sinks.close)
        if webhook is not None:
            sinks.add(WebhookSink(webhook, secret=os.environ.get(_SECRET)))
        with as_options(_OPTIONS):
            follower = LogFollower(log, monitor, state=kept, sinks=sinks, anew=start_anew)
        source = DashboardSource(log, follower=follower, canary=canary)
        _offer_metrics(source, follower, sinks)
        server = DashboardServer(
            source,
            host=host,
            port=port,
            token=token,
            hosts=tuple(allowed_host or ()),
            limits=Limits(per_address=connections_per_address),
        )
        stack.callback(server.close)
        follower.start()
        stack.callback(follower.close)
        err.print(f"{server.url}  (Ctrl-C ends it)", highlight=False, markup=False)
        if token is not None:
            err.print(
                "readers give the token once: …/?token=<token>", highlight=False, markup=False
            )
        with suppress(KeyboardInterrupt):  # the ordinary way to end it
            server.run()
    err.print(f"stopped; tests and alarms are kept in {kept}", highlight=False, markup=False)


def _offer_metrics(source: DashboardSource, follower: LogFollower, sinks: SinkGroup) -> None:
    factory = metrics_factory("prometheus")
    if factory is None:
        return
    canary, log = source.canary_file, source.log

    def points() -> list[CanaryPoint]:
        return read_points(canary, 100) if canary is not None and canary.is_file() else []

    def written() -> LogSummary | None:
        return log_summary(log) if log.is_file() else None

    def lost() -> dict[str, Mapping[str, int]]:
        return {"follower": follower.dropped.by_reason}

    offered = factory(source.snapshots, canary=points, lost=lost, log=written)
    sinks.add(offered)
    source.metrics = offered.text


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(_TOKEN)
    try:
        found = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"--token-file {file} cannot be read: {error}") from error
    if not found:
        raise DataError(f"--token-file {file} is empty")
    return found
