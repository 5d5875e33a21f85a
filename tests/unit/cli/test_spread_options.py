"""Commands that share a set of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from rag_sourcebias.terminal.options import spread


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where; one field without a default."""

    town: Annotated[str, typer.Option(help="A town.")]
    number: Annotated[int, typer.Option("--house")] = 1


seen: list[object] = []


@spread
def visit(
    who: Annotated[str, typer.Argument()],
    *,
    place: Place,
    often: Annotated[bool, typer.Option("--often")] = False,
) -> None:
    """Visit somebody."""
    seen.append((who, place, often))


def invoke(*args: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(visit)
    seen.clear()
    found = CliRunner().invoke(app, list(args), env={"COLUMNS": "200", "NO_COLOR": "1"})
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("Ada", "--town", "Ulm"), ("Ada", Place(town="Ulm"), False)),
        (
            ("Ada", "--town", "Ulm", "--house", "3", "--often"),
            ("Ada", Place(town="Ulm", number=3), True),
        ),
    ],
)
def test_the_command_gets_one_object(args: tuple[str, ...], expected: object) -> None:
    assert invoke(*args)[0] == 0
    assert seen == [expected]


def test_help_shows_the_fields_where_the_set_stands() -> None:
    code, output = invoke("--help")
    assert code == 0
    assert "Visit somebody." in output
    assert "place" not in output
    assert output.index("--town") < output.index("--house") < output.index("--often")
