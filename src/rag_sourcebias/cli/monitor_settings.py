"""A monitor as the options of a command describe it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any

from rag_sourcebias.cli import monitor_options as opt
from rag_sourcebias.cli.checks import choice
from rag_sourcebias.cli.tag_summary import TagSummary
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import read_tags
from rag_sourcebias.monitor.aggregate import Aggregation
from rag_sourcebias.monitor.baselines import Baseline, CorpusShare, PoolShare, ReferenceWindow
from rag_sourcebias.monitor.corpus_share import corpus_share
from rag_sourcebias.monitor.skew_monitor import SkewMonitor
from rag_sourcebias.monitor.tag_errors import TagErrors
from rag_sourcebias.tagging.opening import open_tag_store
from rag_sourcebias.tagging.stores import open_document_store
from rag_sourcebias.types.monitor import Alarm

__all__ = ["Watch", "build_monitor", "read_labels", "read_time"]

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_KINDS = "reference:N, pool:K, shares:NAME=SHARE,…, tags:FILE, store:SPEC and none"


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is watched: the options of a monitor, the same in every command that makes one."""

    by: opt.By = "source"
    baseline: opt.Baseline = "reference:1000"
    confidence_level: opt.ConfidenceLevel = 0.95
    changes: opt.Changes = None
    split_by: opt.SplitBy = "collection"
    together: opt.Together = None
    tag_errors: opt.TagErrors = None


def build_monitor(
    watch: Watch, *, on_alarm: Callable[[Alarm], object] | None = None
) -> SkewMonitor:
    """Return a new monitor."""
    by = choice("by", watch.by, ("source", "style"))
    return SkewMonitor(
        by=by,
        baseline=_baseline(watch.baseline, by=by),
        confidence_level=watch.confidence_level,
        labels=tuple(name.strip() for name in watch.split_by.split(",") if name.strip()),
        aggregate=None if watch.together is None else _aggregation(watch.together),
        change_run_length=watch.changes,
        on_alarm=on_alarm,
        tag_errors=None if watch.tag_errors is None else _tag_errors(watch.tag_errors),
    )


def _baseline(text: str, *, by: Any) -> Baseline | None:  # noqa: ANN401 - a literal
    """Return the baseline that an option names."""
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
        return _of_tags(Path(rest), by)
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


def _of_tags(path: Path, by: Any) -> CorpusShare:  # noqa: ANN401 - a literal
    if path.suffix in (".sqlite", ".jsonl", ".db"):
        if not path.is_file():
            raise DataError(f"there is no tag store {path}")
        return corpus_share(open_tag_store(path), by=by)
    return corpus_share(read_tags(path), by=by)


def _of_store(spec: str, by: str) -> CorpusShare:
    store, summary = open_document_store(spec), TagSummary()
    for _, tags in store.tags():
        summary.add(tags)
    if not summary.n_documents:
        raise DataError(f"{store.name} holds no documents: there is no share of the corpus")
    counts = summary.counts(0 if by == "source" else 1)
    counts[""] = summary.n_documents - sum(counts.values())
    return CorpusShare({name: n / summary.n_documents for name, n in counts.items() if n})


def _aggregation(together: str) -> Aggregation:
    # Sessions come once; queries come back, and are remembered.
    return (
        Aggregation(key="query") if together == "query" else Aggregation(key=together, remember=0)
    )


def _tag_errors(text: str) -> TagErrors:
    """Read ``llm:gpt-4o=0.9,0.95``."""
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
    return TagErrors.of_rates(
        sensitivity=sensitivity, specificity=specificity, baseline="human", other=other
    )


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
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return time() - float(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()  # without a zone: local time
    except (ValueError, OverflowError):
        raise DataError(
            f"--{option} {text!r}: write a date such as 2026-11-21T10:00, or 90m, 24h, 7d"
        ) from None
