"""Put the shipped rule files where Prometheus and Grafana read them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike, write_atomic

__all__ = ["RULE_FILES", "read_rules", "write_rules"]

RULE_FILES = ("alerts.yml", "grafana-dashboard.json")
"""Alert rules for ``rule_files`` of Prometheus, and a dashboard to import into Grafana."""


def read_rules(name: str) -> str:
    """Return the text of one of :data:`RULE_FILES`.

    Raises
    ------
    DataError
        If there is no such file.
    """
    if name not in RULE_FILES:
        raise DataError(f"no rule file {name!r}; there are {', '.join(RULE_FILES)}")
    return (files("rag_sourcebias.monitor.rules") / name).read_text(encoding="utf-8")


def write_rules(folder: PathLike, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write every rule file into a folder, which is created.

    The expressions ask for the metrics of
    :class:`rag_sourcebias_integrations.prometheus.SkewCollector` with its default prefix.

    Parameters
    ----------
    folder : path
    overwrite : bool
        Replace files that are there already, which may have been edited.

    Returns
    -------
    tuple of pathlib.Path
        ``alerts.yml`` and ``grafana-dashboard.json``.

    Raises
    ------
    DataError
        If a file is there already, or cannot be written. No file is written where one is there.
    """
    targets = tuple(Path(folder) / name for name in RULE_FILES)
    there = [path.name for path in targets if path.exists()]
    if there and not overwrite:
        raise DataError(f"{folder} has {' and '.join(there)} already; say overwrite=True")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path in targets:
            write_atomic(path, [read_rules(path.name)])
    except OSError as error:
        raise DataError(f"rule files cannot be written to {folder}: {error}") from error
    return targets
