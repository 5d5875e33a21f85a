"""What a report of any kind does of its own, and what adding to one takes."""

from __future__ import annotations

import io
import json
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.finding import Code, Finding, Frame, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.report import document as d
from rag_sourcebias.report.figures import Guide, Intervals, Row, mark
from rag_sourcebias.report.render import (
    Outcome,
    Report,
    markdown,
    page,
    read,
    require_table,
    terminal,
    write_report,
    write_table,
)


def interval(value: float) -> Interval:
    return Interval(
        estimate=value, lower=value - 1, upper=value + 1, confidence_level=0.95,
        method=InferCode.DELTA(),
        n_labeled=20,
    )  # fmt: skip


class LengthCode(Code, home="lengths"):
    """What can be found of lengths."""

    LONGER = "{system} ranks longer text higher: {delta:signed}."


@dataclass(frozen=True, kw_only=True, repr=False)
class Lengths(Report):
    """A small report: by how much each system ranks longer text higher."""

    systems: tuple[str, ...]
    deltas: tuple[float, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    schema_version: int = 1
    _versioned = ("lengths", 1)

    @property
    def frames(self) -> dict[str, Frame]:
        return {"delta": Frame(columns={"system": self.systems, "delta": self.deltas})}

    def findings(self) -> list[Finding]:
        pairs = zip(self.systems, self.deltas, strict=True)
        return [LengthCode.LONGER(system=name, delta=interval(delta)) for name, delta in pairs]

    def blocks(self) -> tuple[d.Block, ...]:
        return (d.Table(caption="Length", frame=self.frames["delta"]),)

    def page(self) -> d.Document:
        first, *_ = findings = self.findings()
        return d.Document(
            kind="Report on length", name="sample", first=d.First(answer=first),
            headline=tuple(findings), facts=(), created="2026-01-02", cautions="", warnings=(),
            sections=(d.Section(id="all", title="All", blocks=self.blocks(), brief=True),),
        )  # fmt: skip

    def _outcomes(self) -> Iterator[Outcome]:
        for name, delta in zip(self.systems, self.deltas, strict=True):
            code = "longer" if delta > 0 else "shorter"
            yield Outcome(name, code, "Δ", interval(delta))


SMALL = Lengths(systems=("BM25", "Dense"), deltas=(2.5, -1.25))


# What is added, of each one thing: a finding (a code and its sentence), a frame, a figure.


class AddedCode(Code, home="added"):
    """What the addition says."""

    MANY = "{n:system was|systems were} measured."


class Added(Lengths):
    """The report with a finding, a frame and a figure more."""

    @property
    def frames(self) -> dict[str, Frame]:
        more = Frame(columns={"number of": ("systems",), "n": (len(self.systems),)})
        return {**super().frames, "counts": more}

    def findings(self) -> list[Finding]:
        return [*super().findings(), AddedCode.MANY(n=len(self.systems))]

    def blocks(self) -> tuple[d.Block, ...]:
        pairs = zip(self.systems, self.deltas, strict=True)
        rows = tuple(
            Row(label=name, marks=(mark(interval(delta), "other"),)) for name, delta in pairs
        )
        figure = Intervals(title="Length by system", rows=rows, guides=(Guide(at=0),))
        counts = d.Table(caption="Counts", frame=self.frames["counts"])
        return (*super().blocks(), counts, d.Pictures(items=(("By system", figure),)))


# End of what is added.


def printed(report: Report) -> str:
    stream = io.StringIO()
    terminal(report.page(), Console(file=stream, width=100, color_system=None))
    return stream.getvalue()


def test_what_is_added_stands_in_every_output_and_takes_forty_lines() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    added = source.partition("# What is added")[2].partition("# End of what is added")[0]
    assert len([line for line in added.splitlines()[1:] if line]) <= 40
    report = Added(systems=SMALL.systems, deltas=SMALL.deltas)
    for text in (page(report.page()), markdown(report.page()), printed(report)):
        assert "2 systems were measured." in " ".join(text.split())
    assert page(report.page()).count("<svg") == 1
    assert "<desc" in page(report.page())
    assert report.table("counts").to_csv() == "number of,n\nsystems,2\n"
    assert "2 systems were measured." not in markdown(SMALL.page())


def test_a_table_by_its_name() -> None:
    assert SMALL.table("delta").to_csv() == "system,delta\nBM25,2.5\nDense,-1.25\n"
    with pytest.raises(DataError, match=r"this Lengths has no table 'all'; it has 'delta'$"):
        SMALL.table("all")


def test_verdicts() -> None:
    assert SMALL.verdict == "differs"
    assert SMALL.verdicts == {"BM25": "longer", "Dense": "shorter"}
    assert Lengths(systems=("a",), deltas=(1,)).verdict == "longer"
    assert Lengths(systems=(), deltas=()).verdict == "none"


def test_a_line_and_a_few() -> None:
    assert repr(SMALL) == (
        "<Lengths: BM25 longer, Δ 2.5 [1.5, 3.5]; Dense shorter, Δ −1.2 [−2.2, −0.2]>"
    )
    assert repr(Lengths(systems=(), deltas=())) == "<Lengths: nothing was compared>"
    many = Lengths(systems=tuple("abcdefgh"), deltas=(1.0,) * 8)
    assert "; and 5 more>" in repr(many)
    lines = str(many).splitlines()
    assert lines[0] == "Report on length: sample"
    assert lines[-2:] == ["  and 2 more", ".table(name) of delta; .save(folder), .open()"]
    nasty = Lengths(systems=("a\x1b[31m\nb",), deltas=(1.0,))
    assert "\x1b" not in repr(nasty) + str(nasty) + nasty._repr_html_()
    assert len(repr(nasty).splitlines()) == 1


def test_saved_opened_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SMALL.save(tmp_path / "out")
    assert sorted(p.name for p in folder.iterdir()) == ["report.html", "report.json", "report.md"]
    assert read(folder / "report.json", {None: ("length", Lengths)}) == SMALL
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    file = SMALL.open()
    assert shown == [file.as_uri()]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"schema_version": 2}, UnsupportedVersionError, "lengths schema version 2 cannot be read"),
        ({"kind": "other"}, DataError, "report of kind 'other' is unknown"),
        ({"kind": ["x"]}, DataError, r"report of kind \['x'\] is unknown"),
        ({"deltas": "x"}, DataError, "is not a complete length report: .*deltas"),
        ({"systems": [{}]}, DataError, "is not a complete length report"),
    ],
)
def test_a_report_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, change: dict[str, object], error: type[Exception], message: str
) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(SMALL.to_dict() | change), encoding="utf-8")
    with pytest.raises(error, match=message) as caught:
        read(file, {None: ("length", Lengths)})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("depth", [3_000, 100_000])
def test_a_report_nested_deeply_is_one_sentence(tmp_path: Path, depth: int) -> None:
    file = tmp_path / "report.json"
    text = json.dumps(SMALL.to_dict() | {"settings": {"a": "DEEP"}})
    file.write_text(text.replace('"DEEP"', "[" * depth + "]" * depth), encoding="utf-8")
    with pytest.raises(DataError, match=r"report\.json.* is not .*report") as caught:
        read(file, {None: ("length", Lengths)})
    assert "\n" not in str(caught.value)


def test_a_table_in_a_file(tmp_path: Path) -> None:
    for ending, start in ((".csv", "system,delta"), (".md", "| system"), (".tex", r"\begin{tab")):
        file = tmp_path / f"table{ending}"
        write_table(SMALL.table("delta"), file)
        assert file.read_text(encoding="utf-8").startswith(start)
        assert file.read_text(encoding="utf-8").endswith("\n")
    with pytest.raises(DataError, match=r"table\.xlsx: a table is written to a file ending in "):
        require_table(tmp_path / "table.xlsx")


def test_formats_that_do_not_exist(tmp_path: Path) -> None:
    for formats in (["pdf"], []):
        with pytest.raises(DataError, match="unknown report formats"):
            write_report(SMALL, tmp_path, formats=formats)
