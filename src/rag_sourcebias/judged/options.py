"""Options of the commands about judged evaluations, named once."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

ITEMS, RANKINGS, STATISTICS = "Items", "Rankings", "Statistics"
DATA = "What to judge"
COLUMNS, OUTPUT = "Columns (found by their usual names)", "Output"

Gain = Annotated[
    str,
    typer.Option(
        help="exponential (2^r − 1) or linear (r), for DCG and NDCG.", rich_help_panel=RANKINGS
    ),
]
MinGrade = Annotated[
    int, typer.Option(min=1, help="Lowest relevant grade.", rich_help_panel=RANKINGS)
]
Grades = Annotated[
    int | None,
    typer.Option(
        "--grades",
        min=2,
        help="Number of grades, where --labels holds votes or grades and may lack the highest.",
        rich_help_panel=RANKINGS,
    ),
]
IdColumns = Annotated[
    list[str] | None,
    typer.Option("--id", help="Id; repeatable (query, document).", rich_help_panel=COLUMNS),
]
HumanColumn = Annotated[
    str | None, typer.Option("--human", help="Human label.", rich_help_panel=COLUMNS)
]
JudgeColumn = Annotated[
    str | None, typer.Option("--judge", help="Judge value.", rich_help_panel=COLUMNS)
]
JudgeColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        help="Judge value; repeatable: several judges, or votes of one, are combined.",
        rich_help_panel=COLUMNS,
    ),
]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", help="What is compared: system, source.", rich_help_panel=COLUMNS),
]
ClusterColumn = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Items that depend on each other: the question, where several systems answer it. "
        "A column query_id is taken for it; none: items are independent.",
        rich_help_panel=COLUMNS,
    ),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=STATISTICS)]
Seed = Annotated[int, typer.Option(rich_help_panel=STATISTICS)]
JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json", help="Write the report as JSON; - is standard output.", rich_help_panel=OUTPUT
    ),
]
Queries = Annotated[
    Path | None,
    typer.Option(
        help="Queries: id and text, as JSON lines (BEIR), TSV, CSV or Parquet.",
        rich_help_panel=DATA,
    ),
]
Documents = Annotated[
    list[Path] | None,
    typer.Option(
        help="Documents: id and text, likewise, or a BEIR folder; repeatable.",
        rich_help_panel=DATA,
    ),
]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns named on the command line."""

    id: IdColumns = None
    human: HumanColumn = None
    judge: JudgeColumns = None
    group: GroupColumn = None
    cluster: ClusterColumn = None

    def given(self) -> list[str]:
        """Return the options that were used."""
        return [f"--{name}" for name in self.__slots__ if getattr(self, name)]

    def arguments(self) -> str:
        """Return the options with their columns, as they are typed."""
        typed = [
            argument
            for name in self.__slots__
            if (value := getattr(self, name))
            for column in ([value] if isinstance(value, str) else value)
            for argument in (f"--{name}", column)
        ]
        return shlex.join(typed)
