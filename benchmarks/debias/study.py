"""One report per system and data set, kept in the work folder as soon as it is there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from methods import System

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.protocols import RetrieverSpec
from rag_sourcebias.debias.audit import measure_debias
from rag_sourcebias.debias.data import DebiasReport
from rag_sourcebias.reports import read_report_json, write_report_json


@dataclass(frozen=True)
class Measured:
    """One system on one data set, which has an outcome for each LLM source."""

    name: str
    data: str
    report: DebiasReport


def measured(
    systems: Iterable[System],
    datasets: Iterable[Dataset],
    before: RetrieverSpec,
    *,
    fitted_texts: Collection[str],
    work: Path,
    on_stage: callable = print,
    only_finished: bool = False,
) -> list[Measured]:
    systems, found = list(systems), []
    for data in datasets:
        for system in systems:
            name = system.method.name
            file = work / "reports" / f"{slug(data.name)}--{slug(name)}.json.gz"
            if file.is_file():
                report = read_report_json(file)
            elif only_finished:
                continue
            else:
                on_stage(f"{data.name}: {name}")
                report = measure_debias(
                    before,
                    [system.spec_for(data)],
                    [data],
                    methods=[system.method],
                    fitted_texts=fitted_texts,
                )
                file.parent.mkdir(parents=True, exist_ok=True)
                write_report_json(report, file)
            found.append(Measured(name, data.name, report))
    return found


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
