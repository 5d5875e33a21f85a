"""``monitor``: retrieval skew in production, from the log that an application keeps."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Thread
from time import time
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from rag_sourcebias.core.codec import to_plain
from rag_sourcebias.core.data import Run
from rag_sourcebias.core.errors import DataError, SourceBiasError, setting
from rag_sourcebias.infer.verified import read_verification, require_informative, side
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.intake.rankings import read_run
from rag_sourcebias.monitor.alarms import WHAT
from rag_sourcebias.monitor.dashboard.server import DashboardServer
from rag_sourcebias.monitor.dashboard.source import DashboardSource, OverTime
from rag_sourcebias.monitor.data import Alarm, MonitorSnapshot
from rag_sourcebias.monitor.erasing import erase_events
from rag_sourcebias.monitor.follow import LogFollower, read_position
from rag_sourcebias.monitor.follow import replay as feed
from rag_sourcebias.monitor.metrics import write_rules
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.rotating import rotate_log
from rag_sourcebias.monitor.settings import (
    Baseline,
    CorpusShare,
    PoolShare,
    ReferenceWindow,
    TagErrors,
    corpus_share,
    shares_of,
)
from rag_sourcebias.monitor.sinks import LoggingSink, SinkGroup, WebhookSink
from rag_sourcebias.observe.document_stores import summarise_store
from rag_sourcebias.observe.events import hash_query, read_key
from rag_sourcebias.observe.log.reading import LogSummary, log_summary
from rag_sourcebias.observe.tags import SQLITE, open_tag_store
from rag_sourcebias.retrieval.rerank import metrics_factory
from rag_sourcebias.terminal import options as common
from rag_sourcebias.terminal.console import out, say, stages, tell, write_json
from rag_sourcebias.terminal.options import as_options, require_writable_file, spread, used

# Options of the monitor commands, named once.


_WATCH = "What is watched"
_WHICH = "Which retrievals"
_SERVE = "Serving"
_FORGET = "Forgetting"
_RULES = "Prometheus and Grafana"


def _state_of(log: Path) -> Path:
    return log.with_name(f"{log.name}.monitor.json")


# A monitor as the options of a command describe it.


SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_KINDS = "reference:N, pool:K, shares:NAME=SHARE,…, tags:FILE, store:SPEC and none"


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is watched: the options of a monitor, the same in every command that makes one."""

    panel = _WATCH

    by: Literal["source", "style"] = setting("source", "source or style.")
    baseline: str | None = setting(
        None,
        "What shares are held against: reference:N (the past; no alarm in the first N "
        "retrievals and two weeks) · "
        "pool:K (all candidates of the query, of which K are shown) · "
        "shares:human=0.5,llm:gpt-4o=0.5 · tags:FILE (shares of a corpus in a file of tags) · "
        "store:chroma:FOLDER (shares in a store) · none. reference:1000 by default; replay "
        "takes the one that serve used on the log.",
    )
    id: str | None = setting(None, "Column of the document in a file of tags.")
    group: str | None = setting(None, "Column there of what --by names.")
    confidence_level: float = setting(
        0.95,
        "Of intervals.",
    )
    split_by: str = setting(
        "collection",
        "Labels whose values are watched separately, with commas between.",
    )
    together: str | None = setting(
        None,
        "Label of users or sessions, of each of which ten retrievals count in a half-day "
        "(user and session are known).",
    )
    topics: str | None = setting(
        None, "Label that says what is asked, so that a shift can be split."
    )
    tag_errors: str | None = setting(
        None,
        "Sensitivity and specificity of the detector of a source, beside human: "
        "llm:gpt-4o=0.9,0.95, or a filled-in sheet of tag verify. Corrected shares are shown "
        "beside the raw ones.",
    )

    @property
    def columns(self) -> dict[str, str]:
        """Columns of a file of tags that were named."""
        named = {"doc_id": self.id, self.by: self.group}
        return {role: column for role, column in named.items() if column is not None}


def build_monitor(
    watch: Watch,
    *,
    state: Path | None = None,
    store: str | None = None,
    anew: bool = False,
    tagged: bool = False,
) -> SkewMonitor:
    """Return a new monitor, with what it looks at.

    Without a baseline of its own it has that of a state file, if any, and what the store held.
    """
    by = watch.by
    users = ("user", "session") if watch.together is None else (watch.together,)
    found = None if state is None or anew else read_position(state)
    served = None if found is None else SkewMonitor.from_dict(found[1])
    kind, _, place = (watch.baseline or "").partition(":")
    if watch.columns and kind != "tags" and not tagged:
        raise DataError("--id and --group are columns of a file of tags: --baseline tags:FILE")
    baseline = (
        None if watch.baseline is None else _baseline(watch.baseline, by=by, columns=watch.columns)
    )
    if served is not None and (
        watch.baseline is None
        or (kind in ("store", "tags") and isinstance(served.baseline, CorpusShare))
    ):  # shares of a store that has changed since stay those that the tests began with
        baseline = served.baseline
    spec = store or (place if kind == "store" else None)
    monitor = SkewMonitor(
        by=by,
        baseline=ReferenceWindow() if served is None and watch.baseline is None else baseline,
        confidence_level=watch.confidence_level,
        labels=tuple(name.strip() for name in watch.split_by.split(",") if name.strip()),
        users=users,
        topics=watch.topics,
        tag_errors=None if watch.tag_errors is None else _tag_errors(watch.tag_errors),
        store=None if spec is None else lambda: _of_store(spec, by).shares,
    )
    for at, shares in () if served is None else served.index:
        monitor.note_index(shares, at=at)
    return monitor


def _baseline(text: str, *, by: Any, columns: Mapping[str, str]) -> Baseline | None:  # noqa: ANN401
    kind, _, rest = text.partition(":")
    if kind == "none" and not rest:
        return None
    if kind in ("reference", "pool"):
        try:
            n = int(rest or ("1000" if kind == "reference" else "10"))
        except ValueError:
            raise DataError(f"--baseline {text!r}: {rest!r} is not a whole number") from None
        return ReferenceWindow(n) if kind == "reference" else PoolShare(n)
    if kind == "shares":
        return CorpusShare(_shares(text, rest))
    if kind == "tags" and rest:
        if columns or Path(rest).suffix not in SQLITE:  # a tag store has names of its own
            return corpus_share(read_tags(rest, **columns), by=by)
        if not Path(rest).is_file():
            raise DataError(f"there is no tag store {rest}")
        return corpus_share(open_tag_store(rest), by=by)
    if kind == "store" and rest:
        return _of_store(rest, by)
    raise DataError(f"--baseline {text!r} is none of {_KINDS}")


def _shares(text: str, rest: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in rest.split(","):
        name, equals, value = part.strip().rpartition("=")
        try:
            found["" if name == "untagged" else name] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise DataError(
                f"--baseline {text!r}: cannot read {part!r}; write shares:human=0.6,llm:gpt-4o=0.4"
            )
    return found


def _of_store(spec: str, by: str) -> CorpusShare:
    name, found = summarise_store(spec)
    counts = found.counts(0 if by == "source" else 1)
    counts[""] = found.n_documents - sum(counts.values())
    return shares_of(counts, name)


def _tag_errors(text: str) -> TagErrors:
    """Read ``llm:gpt-4o=0.9,0.95``, or a sheet of verified documents."""
    if text.endswith((".csv", ".jsonl")):
        sheet = read_verification(text)
        others = {source for source in sheet.tags.values() if source and side(source) < 0}
        if len(others) != 1:
            raise DataError(
                f"{text} holds tags of {len(others)} sources other than human; write the rates of "
                "one as --tag-errors llm:gpt-4o=0.9,0.95"
            )
        return TagErrors.of_detector(require_informative(sheet), other=others.pop())
    other, equals, rates = text.rpartition("=")
    try:
        sensitivity, specificity = (float(part) for part in rates.split(","))
    except ValueError:
        equals = ""
    if not (equals and other):
        raise DataError(
            f"--tag-errors {text!r}: write the detected source with sensitivity and specificity, "
            "as llm:gpt-4o=0.9,0.95"
        )
    return TagErrors(other=other, sensitivity=sensitivity, specificity=specificity)


def read_labels(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """Return labels written as ``key=value``."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (equals and key):
            raise DataError(f"--label {pair!r}: write key=value, such as collection=docs")
        found[key] = value
    return found or None


def read_time(option: str, text: str | None) -> float | None:
    """Return seconds since 1970 of a date, or of a time that has passed since."""
    if text is None:
        return None
    ago = SPAN.fullmatch(text.strip())
    if ago is not None and ago[2]:
        return time() - float(ago[1]) * UNITS[ago[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()  # without a zone: local time
    except (ValueError, OverflowError):
        raise DataError(
            f"--{option} {text!r}: write a date such as 2026-11-21T10:00, or 90m, 24h, 7d"
        ) from None


# States and alarms of a monitor on a terminal.


_MOST_ALARMS = 20
_TOLD = {
    "composition": "[yellow]store changed[/]",
    "level": "[yellow]not as known[/]",
    "untagged": "[yellow]untagged[/]",
    "resolved": "[green]resolved[/]",
}


def where(labels: dict[str, str]) -> str:
    """Return labels on one line."""
    return ", ".join(f"{key}={value}" for key, value in labels.items()) or "everything"


def show_snapshots(snapshots: Sequence[MonitorSnapshot]) -> None:
    """Print a table for each set of labels."""
    if not snapshots:
        say("no retrieval")
    for snapshot in snapshots:
        out.print(
            f"[bold]{escape(where(dict(snapshot.labels)))}[/]: "
            f"{snapshot.n_retrievals:,} retrievals, {snapshot.n_documents:,} documents, "
            f"{snapshot.n_empty:,} empty; "
            f"held against {escape(snapshot.baseline)}",
            soft_wrap=True,
        )
        for line in _about(snapshot):
            say(line)
        out.print(_table(snapshot))


def _about(snapshot: MonitorSnapshot) -> list[str]:
    """Return lines on what is learnt, and on what is not as it should be."""
    lines = []
    watch = snapshot.watch
    if watch is not None and watch.left_to_learn:
        lines.append(
            f"{watch.half_days:,} half-days so far: what is usual is learnt over two weeks, and "
            "changes are told after them"
        )
    elif watch is not None:
        lines.append(f"{watch.half_days:,} half-days so far: a change is told after one at least")
    if watch is not None and watch.n_level is not None:
        lines.append(f"shares are of {watch.n_level:,} retrievals: those since the last change")
    seen = sorted({g.group for g in snapshot.groups if g.share > 0})
    if seen == [""]:
        lines.append(
            "no document had a tag: tag them (rag-sourcebias tag --help), or give "
            "instrument(…, tags=…)"
        )
    elif snapshot.unseen:
        lines.append(
            f"the baseline names {', '.join(snapshot.unseen)}, of which no document came; "
            f"{_names(seen)} did"
        )
    if snapshot.odd:
        lines.append(
            "counted all the same: "
            + ", ".join(f"{what} {n:,}" for what, n in sorted(snapshot.odd.items()))
        )
    return lines


def _table(snapshot: MonitorSnapshot) -> Table:
    table = Table(snapshot.by, "of", box=None, pad_edge=False, header_style="dim")
    names = ["share", "interval", "baseline", "change"]
    if snapshot.corrected:
        names.insert(3, "corrected")
    for name in names:
        table.add_column(name, justify="right")
    for share in snapshot.groups:
        cells = {
            "share": f"{share.share:.3f}",
            "interval": f"[{share.lower:.3f}, {share.upper:.3f}]",
            "baseline": "–" if share.baseline is None else f"{share.baseline:.3f}",
            "change": "ALARM" if share.alarm else f"{share.statistic:.0%}",
            "corrected": "–",
        }
        if share.measure == "exposure" and share.group in snapshot.corrected:
            cells["corrected"] = f"{snapshot.corrected[share.group]:.3f}"
        row = [share.group or "untagged", WHAT[share.measure], *(cells[n] for n in names)]
        table.add_row(*map(escape, row), style="bold red" if share.alarm else None)
    return table


def show_alarms(alarms: Sequence[Alarm], *, in_time: bool) -> None:
    """Print alarms in the order they came; ``in_time`` where their times mean something."""
    if not alarms:
        say("no alarm")
        return
    left_out = len(alarms) - _MOST_ALARMS
    for alarm in alarms[:_MOST_ALARMS]:
        when = f"{_time(alarm.at)}, " if in_time else ""
        place = f" ({escape(where(dict(alarm.labels)))})" if alarm.labels else ""
        kind = _TOLD.get(alarm.rule, "[bold red]alarm[/]")
        out.print(
            f"{kind} {when}after {alarm.n:,}{place}: {escape(alarm.message)}",
            soft_wrap=True,
        )
    if left_out > 0:
        say(f"… and {left_out:,} more; --json - prints them all")


# ``monitor replay``: what a monitor would have said of retrievals that were recorded.


_REPLAY_OPTIONS = {"tags=": "--tags", "since= and until=": "--since and --until"}


@dataclass(frozen=True, kw_only=True)
class Forgetting:
    """What is deleted, where retrievals are to be forgotten."""

    panel = _FORGET

    forget: bool = setting(
        False,
        "Delete the retrievals with the one --label given, so that their bytes are gone: "
        "the log is rewritten. It may be written meanwhile, but stop monitor serve first.",
    )
    archive: Path | None = setting(None, "Folder of the log's Parquet archive.")
    state: Path | None = setting(None, "State file of monitor serve. \\[default: LOG.monitor.json]")
    key_file: Path | None = setting(
        None, "Key under which the log hashes values of this label (hashed_labels)."
    )

    def apply(self, log: Path, labels: Sequence[str] | None) -> int:
        """Delete the retrievals and return how many there were."""
        if len(labels or ()) != 1:
            raise DataError("--forget deletes what one --label has, such as session=abc: name it")
        ((name, value),) = (read_labels(labels) or {}).items()
        if self.key_file is not None:
            value = hash_query(value, key=read_key(self.key_file))
        kept = self.state or _state_of(log)
        return erase_events(log, {name: value}, archive=self.archive, state=kept)


@spread
def replay(
    ctx: typer.Context,
    recorded: Annotated[
        Path,
        typer.Argument(
            help="File of an EventLog, folder of its Parquet archive, or a TREC run (with --tags).",
            show_default=False,
        ),
    ],
    *,
    tags: Annotated[
        Path | None,
        typer.Option(help="Tags of the documents of a run: tags.tsv.", rich_help_panel=_WHICH),
    ] = None,
    watch: Watch,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Only with this label: key=value.", rich_help_panel=_WHICH),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="From this time on: 2026-11-21T10:00, or 90m, 24h, 7d ago.", rich_help_panel=_WHICH
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Before this time.", rich_help_panel=_WHICH)
    ] = None,
    json: common.JsonFile = None,
    forgetting: Forgetting,
) -> None:
    """Feed recorded retrievals through a monitor, to see which alarms there would have been.

    With --forget, delete the retrievals of one label instead. Counts over time stay, without the
    value.

    For example:

        rag-sourcebias monitor replay retrievals.db --baseline reference:500

        rag-sourcebias monitor replay archive/ --baseline shares:human=0.6,llm:gpt-4o=0.4

        rag-sourcebias monitor replay bm25.run --tags tags.tsv --baseline tags:tags.tsv

        rag-sourcebias monitor replay retrievals.db --label session=abc --forget
    """
    if forgetting.forget:
        if useless := [*used(ctx, Watch), *["--since or --until"] * bool(since or until)]:
            raise DataError(f"{', '.join(useless)}: no use with --forget; leave it out")
        say(f"{forgetting.apply(recorded, label):,} retrievals deleted")
        return
    if useless := used(ctx, Forgetting):
        raise DataError(f"{', '.join(useless)}: goes with --forget")
    kept = _state_of(recorded) if recorded.is_file() else None
    monitor = build_monitor(watch, state=kept, tagged=tags is not None)
    where, first, last = read_labels(label), read_time("since", since), read_time("until", until)
    if not recorded.exists():
        raise DataError(f"there is no {recorded}; name an event log, its archive or a TREC run")
    events = recorded if tags is None else read_run(recorded)
    for note in events.notes if isinstance(events, Run) else ():
        tell(str(note))
    with (
        stages() as progress,
        as_options(_REPLAY_OPTIONS),
    ):
        progress.begin(f"replaying {recorded.name}")
        n = feed(
            events,
            monitor,
            tags=None if tags is None else read_tags(tags, **watch.columns),
            labels={"collection": "run"} if isinstance(events, Run) else where,
            since=first,
            until=last,
        )
    snapshots = monitor.snapshot()
    alarms = monitor.alarms
    lost = monitor.dropped.by_reason
    found = {
        "retrievals": n,
        "dropped": dict(lost),
        "alarms": [alarm.to_dict() for alarm in alarms],
        "snapshots": [snapshot.to_dict() for snapshot in snapshots],
    }
    if write_json(json, found):
        return
    show_snapshots(snapshots)
    show_alarms(alarms, in_time=not isinstance(events, Run))
    if lost:
        say(f"left out: {dict(lost)}")


def rotate(
    log: Annotated[Path, typer.Argument(help="File of an EventLog.", show_default=False)],
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            help="Where it goes: a name that is free.  \\[default: LOG with the time in its name]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Move a log aside and begin a new one, while applications go on writing.

    Each retrieval is in one of the two files. A dashboard goes on with the new one.

    For example:

        rag-sourcebias monitor rotate retrievals.db

        rag-sourcebias monitor rotate retrievals.db --to archive/retrievals-2026-11.db
    """
    say(f"{log} is now {rotate_log(log, to)}; a new one follows")


# ``monitor serve``: the dashboard beside a running application.


_TOKEN = "RAG_SOURCEBIAS_TOKEN"
_SECRET = "RAG_SOURCEBIAS_WEBHOOK_SECRET"

_OPTIONS = {"start anew": "say --start-anew", "another state file": "another file as --state"}


@spread
def serve(
    log: Annotated[Path | None, typer.Argument(help="File of an EventLog.")] = None,
    *,
    watch: Watch,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at; any but a loopback address needs a token.",
            rich_help_panel=_SERVE,
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", rich_help_panel=_SERVE)] = 8321,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that readers must give; or set RAG_SOURCEBIAS_TOKEN.",
            rich_help_panel=_SERVE,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            help="Further name under which readers may ask, behind a proxy.",
            rich_help_panel=_SERVE,
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps tests and alarms over restarts.  \\[default: LOG.monitor.json]",
            show_default=False,
            rich_help_panel=_SERVE,
        ),
    ] = None,
    start_anew: Annotated[
        bool,
        typer.Option(
            "--start-anew",
            help="Forget the state kept and read the log anew.",
            rich_help_panel=_SERVE,
        ),
    ] = False,
    webhook: Annotated[
        str | None,
        typer.Option(
            help="POST alarms to this URL; RAG_SOURCEBIAS_WEBHOOK_SECRET signs them.",
            rich_help_panel=_SERVE,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Store (chroma:FOLDER) whose shares are counted every ten minutes and when "
            "something shifts, so that what came in is told from ranking; that of --baseline "
            "store: by itself.",
            rich_help_panel=_SERVE,
        ),
    ] = None,
    alert_rules: Annotated[
        Path | None,
        typer.Option(
            help="Serve nothing: write alert rules for Prometheus and a dashboard for Grafana into "
            "this folder.",
            rich_help_panel=_RULES,
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace rules that are there.", rich_help_panel=_RULES),
    ] = False,
) -> None:
    """Follow a log and show it: shares over time, alarms, single retrievals, metrics.

    The log may be written by other processes meanwhile, or be there only later. Nothing is written
    but the file of the state.

    For example:

        rag-sourcebias monitor serve retrievals.db --baseline store:chroma:db

        rag-sourcebias monitor serve retrievals.db --webhook https://example.com/x

        rag-sourcebias monitor serve retrievals.db --host 0.0.0.0 --token-file token.txt

        rag-sourcebias monitor serve --alert-rules rules
    """
    if alert_rules is not None:
        for path in write_rules(alert_rules, overwrite=overwrite):
            say(str(path))
        return
    if log is None:
        raise DataError("name the file of an EventLog, or --alert-rules and a folder")
    if log.exists():
        log_summary(log)  # says what is wrong with it
    kept = state or _state_of(log)
    with as_options(_OPTIONS):
        monitor = build_monitor(watch, state=kept, store=store, anew=start_anew)
    require_writable_file("state", kept)
    token = _token(token_file)
    with ExitStack() as stack:
        sinks = SinkGroup(LoggingSink())
        stack.callback(sinks.close)
        if webhook is not None:
            sinks.add(WebhookSink(webhook, secret=os.environ.get(_SECRET)))
        with as_options(_OPTIONS):
            follower = LogFollower(log, monitor, state=kept, sinks=sinks, anew=start_anew)
        source = DashboardSource(log, follower=follower)
        _offer_metrics(source, follower, sinks)
        server = DashboardServer(
            source,
            host=host,
            port=port,
            token=token,
            hosts=tuple(allowed_host or ()),
        )
        stack.callback(server.close)
        _say_first(log)
        follower.start()
        Thread(target=_read_once, args=(source,), daemon=True).start()
        stack.callback(follower.close)
        tell(f"{server.url}  (Ctrl-C ends it)")
        if token is not None:
            tell("readers give the token once: …/?token=<token>")
        with suppress(KeyboardInterrupt):  # the ordinary way to end it
            server.run()
    tell(f"stopped; tests and alarms are kept in {kept}")


def _read_once(source: DashboardSource) -> None:
    """Read what happened, so that the first reader of a long log does not wait for it."""
    with suppress(SourceBiasError):
        source.series(OverTime())


def _say_first(log: Path) -> None:
    """Say at once what a log that shows nothing lacks."""
    if not log.parent.is_dir():
        raise DataError(f"there is no folder {log.parent}; name the file of your EventLog")
    if not log.exists():
        tell(
            f"{log} is not there yet: waiting for an application to write it "
            f'(EventLog("{log}") and instrument(…); is the path right?)'
        )
        return
    for line in _remedies(log_summary(log)):
        tell(line)


def _remedies(found: LogSummary) -> list[str]:
    if not found.n_written:
        return ["nothing was recorded: is what the application searches instrumented?"]
    if found.tags and not any(source or style for source, style in found.tags):
        return [
            "no document had a source or a style: tag them (rag-sourcebias tag --help), or give "
            "instrument(…, tags=…)"
        ]
    return []


def _offer_metrics(source: DashboardSource, follower: LogFollower, sinks: SinkGroup) -> None:
    factory = metrics_factory("prometheus")
    if factory is None:
        return
    log = source.log
    offered = factory(
        source.snapshots,
        lost=lambda: {"follower": follower.dropped.by_reason},
        log=lambda: log_summary(log) if log.is_file() else None,
    )
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


# What a log holds, for ``start``.


def log_lines(found: LogSummary) -> list[str]:
    """Say what a log holds: how many retrievals, since when, from where, and what was lost."""
    sets = ", ".join(str(dict(labels)) for labels in found.labels[:_MOST_SETS])
    more = len(found.labels) - _MOST_SETS
    later = f", {found.n_later:,} of them later stages of a request" if found.n_later else ""
    return [
        f"{found.n_kept:,} retrievals kept of {found.n_written:,} written{later}",
        f"from {_time(found.since)} to {_time(found.until)}",
        f"labels: {sets or 'none'}{f' and {more:,} more' if more > 0 else ''}",
        f"sources: {_names(source for source, _ in found.tags)}",
        f"styles: {_names(style for _, style in found.tags)}",
        *_beside(found),
        f"lost: {dict(found.dropped) or 'nothing'}",
    ]


def log_figures(found: LogSummary) -> dict[str, Any]:
    """Return the same as plain data."""
    tags = [{"source": source, "style": style} for source, style in found.tags]
    return {**to_plain(found), "tags": tags}


_MOST_SETS = 50


def _beside(found: LogSummary) -> list[str]:
    """Return lines on what is not as it should be, and on labels that are kept apart."""
    lines = []
    overflowed = {name or "labels with ever new names": n for name, n in found.overflowed.items()}
    for what, counts, one in (
        ("kept with each retrieval, not counted by", found.event_labels, "{} of {:,}"),
        ("too many values, counted as 'other'", overflowed, "{} in {:,} retrievals"),
        (
            "sources that are neither human nor llm:<model>",
            found.odd_sources,
            "{} ({:,} documents)",
        ),
    ):
        if counts:
            lines.append(f"{what}: {', '.join(one.format(*named) for named in counts.items())}")
    if found.bad_tags:
        lines.append(f"tags that could not be read, and are unknown: {found.bad_tags:,}")
    lines += [f"noted: {note}" for note in found.notes]
    if found.beside:
        lines.append(f"files beside it: {', '.join(found.beside)}")
    lines += _remedies(found)
    return lines


def _names(found: Iterable[str | None]) -> str:
    return ", ".join(sorted({name or "untagged" for name in found})) or "none"


def _time(at: float | None) -> str:
    if at is None:
        return "–"
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
