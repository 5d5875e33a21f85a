"""What a report was made of and with: the tables that every kind of report ends with."""

from __future__ import annotations

from collections.abc import Mapping

from rag_sourcebias.core.finding import Frame
from rag_sourcebias.measure.dataset import DataSummary
from rag_sourcebias.report.document import Facts, Section, Table


def facts(rows: Mapping[str, object]) -> Frame:
    """Return a table of two columns."""
    return Frame(columns={"name": tuple(rows), "value": tuple(rows.values())})


def about(
    data: DataSummary,
    settings: Mapping[str, object],
    systems: Mapping[str, Mapping[str, object]],
    environment: Mapping[str, str],
) -> dict[str, Frame]:
    """Return the tables by name.

    Parameters
    ----------
    settings : mapping
        Of the report.
    systems : mapping
        Settings of each model that it used.
    environment : mapping
        Versions, machine and time.
    """
    stated = [
        (system, name, str(value)) for system, own in systems.items() for name, value in own.items()
    ]
    names, settings_of, values = zip(*stated, strict=True) if stated else ((), (), ())
    return {
        "data": facts({
            "name": data.name,
            "design": data.design,
            "queries": data.n_queries,
            "judgments": data.n_judgments,
            "pairs of versions": data.n_pairs,
            **{f"tags, {origin}": n for origin, n in data.origins.items()},
            "licence": data.license or "not stated",
            "attribution": data.attribution or "not stated",
        }),
        "documents": Frame(
            columns={
                "source": tuple(data.documents),
                "documents": tuple(data.documents.values()),
                "mean words": tuple(map(data.mean_words.get, data.documents)),
            }
        ),
        "settings": facts(settings),
        "systems": Frame(
            columns={"system": names, "setting": settings_of, "value": values}, n_heads=2
        ),
        "environment": facts(environment),
    }  # fmt: skip


def about_section(tables: Mapping[str, Frame]) -> Section:
    """Return the last section of a page, with the tables of :func:`about`."""
    return Section(
        id="data",
        nav="Data and settings",
        title="Data, settings and versions",
        blocks=(
            Facts(
                frames=(
                    ("Data", tables["data"]),
                    ("Settings", tables["settings"]),
                    ("Environment", tables["environment"]),
                )
            ),
            Table(caption="Documents by source", frame=tables["documents"]),
            *(
                [Table(caption="Models and their settings", frame=tables["systems"])]
                if len(tables["systems"])
                else []
            ),
        ),
    )
