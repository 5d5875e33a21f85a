"""Every number in a sentence of a source audit, computed again from the tables of its report.

Reports are random. The rules below are plain code of their own: they read tables, never the
findings' code. Each rule is also shown a finding with another number.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from intervals import normal, similar_p
from stored_reports import stored

from rag_sourcebias.core.finding import Finding, Frame, Interval, Wording
from rag_sourcebias.report.document import First, Table
from rag_sourcebias.source.audit import adjusted
from rag_sourcebias.source.findings import REPEATS, SourceCode

N_REPORTS = 12
Rng = np.random.Generator
Row = dict[str, Any]
Tables = Mapping[str, list[Row]]


# Reports.


def random_cell(rng: Rng, old: Any) -> Any:
    if old.interval is None:
        return old
    published = normal(rng.normal(0, 25), rng.uniform(1, 20), limit=200)
    centred = normal(published.estimate + rng.normal(0, 2), rng.uniform(1, 20), limit=200)
    return dataclasses.replace(
        old,
        relative_delta=published.estimate,
        interval=published,
        p_value=similar_p(rng, centred),
        p_adjusted=None,
        n_needed=None,
        centred=dataclasses.replace(old.centred, value=centred.estimate, interval=centred),
    )


def random_control(rng: Rng, old: Any) -> Any:
    difference = normal(rng.normal(0, 0.03), rng.uniform(0.005, 0.03))
    return dataclasses.replace(
        old,
        difference=difference,
        p_value=similar_p(rng, difference),
        mean_baseline=old.mean_other + difference.estimate,
    )


def random_twin(rng: Rng, old: Any) -> Any:
    above = rng.choice([0.0, 0.5, 1.0], size=old.n_pairs, p=rng.dirichlet([4, 1, 4]))
    return dataclasses.replace(old, other_above=above)


@functools.cache
def report_of(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    report = stored(("skew-full", "skew-three", "skew-evidence")[seed % 3])
    systems = [
        dataclasses.replace(
            system,
            cells=tuple(random_cell(rng, cell) for cell in system.cells),
            sole_corpus=tuple(random_control(rng, check) for check in system.sole_corpus),
            twins=tuple(random_twin(rng, twin) for twin in system.twins),
            n_empty=int(rng.integers(3)),
            n_untagged=int(rng.integers(3)),
        )
        for system in report.systems
    ]
    design = str(rng.choice(["rewrites", "rewrites", "independent", "unknown"]))
    config = dataclasses.replace(
        report.config,
        margin=float(rng.uniform(2, 20)),
        correction=str(rng.choice(["holm", "bh", "none"])),
    )
    done, n_tests = adjusted(systems, config)
    data = dataclasses.replace(report.data, design=design)
    return dataclasses.replace(report, systems=done, n_tests=n_tests, config=config, data=data)


# What a reader meets.


def findings_in(value: Any) -> Iterator[Finding]:
    if isinstance(value, Finding):
        yield value
        value = tuple(value.numbers.values())
    elif dataclasses.is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in dataclasses.fields(value))
    if isinstance(value, tuple | list):
        for part in value:
            yield from findings_in(part)


def tables_of(report: Any) -> Tables:
    return {name: rows_of(frame) for name, frame in report.frames.items() if name != "queries"}


def rows_of(frame: Frame) -> list[Row]:
    names = tuple(frame.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*frame.columns.values(), strict=True)]


# Rules: what a number must be by the tables. A name stands for any source with that short name.


def short(source: str, tables: Tables) -> str:
    models = [row["source"] for row in tables["documents"] if row["source"].startswith("llm:")]
    if not source.startswith("llm:"):
        return source
    return "LLM" if len(models) == 1 else f"LLM {source.removeprefix('llm:')}"


def settings(tables: Tables) -> Row:
    return {row["name"]: row["value"] for row in tables["settings"]}


def alpha(tables: Tables) -> float:
    return 1 - float(settings(tables)["confidence level"])


def deployed(tables: Tables) -> list[Row]:
    return [row for row in tables["verdicts"] if row["variant"] == "mixed"]


def expected_verdict(row: Row, tables: Tables) -> str:
    delta, p, margin = row["centred_delta"], row["p_adjusted"], settings(tables)["margin"]
    if not isinstance(delta, Interval) or p is None:
        return "refused"
    if max(abs(delta.lower), abs(delta.upper)) <= margin:
        return "alike"
    if (delta.lower > 0 or delta.upper < 0) and p < alpha(tables):
        return "favours_baseline" if delta.estimate > 0 else "favours_other"
    return "cannot_tell"


def about_a_verdict(finding: Finding, tables: Tables) -> bool:
    """A verdict follows from interval, margin and adjusted p, and repeats the row's numbers."""
    numbers, code = finding.numbers, finding.code.name.removeprefix("PLAIN_").lower()
    return any(
        numbers.get("system", row["system"]) == row["system"]
        and short(row["other"], tables) == numbers["other"]
        and expected_verdict(row, tables) == row["verdict"] == code.replace("needed", "cannot_tell")
        and row["n_queries"] == numbers["n_queries"]
        and numbers.get("delta", row["centred_delta"]) == row["centred_delta"]
        and numbers.get("measure", row["measure"]) == row["measure"]
        and numbers.get("margin", settings(tables)["margin"]) == settings(tables)["margin"]
        and numbers.get("n_needed", row["n_needed"]) == row["n_needed"]
        for row in deployed(tables)
    )


def contrary_of(row: Row, tables: Tables) -> set[str]:
    """What points the other way than a verdict, by its interval in one of the tables."""
    side = {"favours_baseline": 1, "favours_other": -1}.get(row["verdict"], 0)
    favoured = settings(tables)["baseline source"] if side > 0 else row["other"]
    intervals = [
        (REPEATS.get(each["setting"], each["setting"]).lower(), each["centred_delta"], side)
        for each in tables["settings strip"]
        if (each["system"], each["other"]) == (row["system"], row["other"])
    ]
    intervals += [
        ("each source searched alone", each["difference"], side)
        for each in tables["sole corpus"]
        if all(each[name] == row[name] for name in ("system", "other", "measure"))
    ]
    tops = [
        each
        for each in tables["exposure"]
        if (each["system"], each["variant"]) == (row["system"], "mixed")
        and each["source"] == favoured
        and row["other"] in each.get("against", row["other"])
        and each["attention"].startswith("top-")
    ]
    if tops:
        last = max(tops, key=lambda each: int(each["attention"].removeprefix("top-")))
        intervals.append((f"exposure on {last['attention']}", last["difference"], 1))
    return {
        name
        for name, interval, sign in intervals
        if side
        and isinstance(interval, Interval)
        and (interval.upper < 0 if sign > 0 else interval.lower > 0)
    }


def about_a_doubted_verdict(finding: Finding, tables: Tables) -> bool:
    code = SourceCode[finding.code.name.removesuffix("_BUT")]
    plain = code(**{name: n for name, n in finding.numbers.items() if name != "contrary"})
    rows = [
        row for row in deployed(tables) if about_a_verdict(plain, {**tables, "verdicts": [row]})
    ]
    told = finding.numbers["contrary"]
    return any(
        (names := contrary_of(row, tables)) and all(name in told for name in names)
        and sum(map(len, names)) + 2 * (len(names) - 1) == len(told)
        for row in rows
    )  # fmt: skip


def about_a_short_doubt(finding: Finding, tables: Tables) -> bool:
    """The source that some row favours, and all that points the other way than that row."""
    told, own = finding.numbers["contrary"], settings(tables)["baseline source"]
    for row in deployed(tables):
        names = contrary_of(row, tables)
        source = own if row["verdict"] == "favours_baseline" else row["other"]
        if (
            names
            and short(source, tables) == finding.numbers["source"]
            and all(name in told for name in names)
            and len(", ".join(names)) == len(told)
        ):
            return True
    return False


def about_how_many_are_doubted(finding: Finding, tables: Tables) -> bool:
    rows = deployed(tables)
    n = sum(bool(contrary_of(row, tables)) for row in rows)
    return (finding.numbers["n"], finding.numbers["n_all"]) == (n, len(rows))


def in_a_row(table: str, **columns: str) -> Callable[[Finding, Tables], bool]:
    """Return a rule: the numbers stand together in a row, under these columns."""

    def rule(finding: Finding, tables: Tables) -> bool:
        return any(
            all(finding.numbers[name] == row[column] for name, column in columns.items())
            for row in tables[table]
        )

    return rule


def about_several(finding: Finding, tables: Tables) -> bool:
    codes = [row["verdict"] for row in deployed(tables)]
    n = finding.numbers
    return (n["n"], n["n_baseline"], n["n_other"], n["n_alike"], n["n_open"]) == (
        len(codes),
        codes.count("favours_baseline"),
        codes.count("favours_other"),
        codes.count("alike"),
        codes.count("cannot_tell") + codes.count("refused"),
    )


def about_a_count(finding: Finding, tables: Tables) -> bool:
    (row,) = deployed(tables)
    baseline, other = row["n_baseline"], row["n_other"]
    names = [settings(tables)["baseline source"], short(row["other"], tables)]
    n = finding.numbers
    return (n["n"], n["n_ties"], n["n_higher"], [n["higher"], n["lower"]]) == (
        baseline + other + row["n_ties"],
        row["n_ties"],
        max(baseline, other),
        names if baseline >= other else names[::-1],
    )


def about_what_is_shown(finding: Finding, tables: Tables) -> bool:
    """Shares on the most ranks that are counted, and in the corpus, of both sources."""
    n = finding.numbers
    rows = [row for row in tables["exposure"] if row["system"] == n["system"]]
    tops = {int(row["attention"][4:]) for row in rows if row["attention"].startswith("top-")}
    rows = [row for row in rows if row["attention"] == f"top-{max(tops)}"]
    return n["cutoff"] == str(max(tops)) and all(
        any(
            short(row["source"], tables) == n[name]
            and (row["share"], row["corpus_share"], row["difference"])
            == (n[f"shown{end}"], n[f"held{end}"], n[f"difference{end}"])
            for row in rows
        )
        for name, end in (("baseline", ""), ("other", "_other"))
    )


def first_reach(tables: Tables) -> float:
    """Where the axis of the first screen ends: beyond all that stands on it."""
    figures = [row["centred_delta"] for row in deployed(tables)[:6]]
    ends = [
        end
        for figure in figures
        for end in ((figure.lower, figure.upper) if isinstance(figure, Interval) else [figure or 0])
    ]
    return min(200.0, 10 * (max(20.0, *map(abs, ends)) // 10 + 1))


def about_the_first_axis(finding: Finding, tables: Tables) -> bool:
    return abs(finding.numbers["reach"]) == first_reach(tables)


def about_what_is_below(finding: Finding, tables: Tables) -> bool:
    return finding.numbers["n"] == len(deployed(tables)) - 6


def about_a_test(finding: Finding, tables: Tables) -> bool:
    n = finding.numbers
    return any(
        n["p"] == row["p"]
        and n.get("p_adjusted", row["p_adjusted"]) == row["p_adjusted"]
        and n.get("n_tests", row["n_tests"]) == row["n_tests"]
        for row in deployed(tables)
    )


def failing(tables: Tables) -> list[tuple[Row, Row]]:
    """Return the verdicts that favour a source beside a control that fails."""
    design = next(row["value"] for row in tables["data"] if row["name"] == "design")
    return [
        (row, check)
        for row in deployed(tables)
        for check in tables["sole corpus"]
        if row["verdict"].startswith("favours")
        and design == "rewrites"
        and all(row[key] == check[key] for key in ("system", "other", "measure"))
        and check["p"] < alpha(tables)
    ]


def about_a_control(finding: Finding, tables: Tables) -> bool:
    n = finding.numbers
    return any(
        all(n[key] == check[key] for key in ("measure", "mean_baseline", "mean_other", "p"))
        for _, check in failing(tables)
    )


def about_what_is_harder(finding: Finding, tables: Tables) -> bool:
    harder = [
        settings(tables)["baseline source"]
        if check["mean_baseline"] < check["mean_other"]
        else short(check["other"], tables)
        for _, check in failing(tables)
    ]
    n = finding.numbers
    return (harder.count(n["source"]), len(deployed(tables))) == (n["n"], n["n_all"])


def about_a_repeat(finding: Finding, tables: Tables) -> bool:
    for row in tables["verdicts"]:
        if row["variant"] != "mixed" and row["centred_delta"] == finding.numbers["delta"]:
            (first,) = (
                one
                for one in deployed(tables)
                if (one["system"], one["other"]) == (row["system"], row["other"])
            )
            same = first["verdict"] == row["verdict"]
            return same == (finding.code is SourceCode.REPEAT)
    return False


def about_the_report(finding: Finding, tables: Tables) -> bool:
    """Numbers of the whole report: settings, sizes, and how many tests there were."""
    facts = {row["name"]: row["value"] for row in tables["data"]}
    reach = [
        abs(end)
        for row in tables["delta"]
        for end in (
            (row["centred_delta"].lower, row["centred_delta"].upper)
            if isinstance(row["centred_delta"], Interval)
            else (row["centred_delta"] or 0.0,)
        )
    ]
    first = deployed(tables)[0]
    known = {
        "measure": settings(tables)["primary measure"],
        "margin": settings(tables)["margin"],
        "n_tests": settings(tables)["tests"],
        "alpha": alpha(tables),
        "level": 1 - alpha(tables),
        "cutoff": min(int(k) for k in settings(tables)["cutoffs"].split(", ")),
        "n_queries": facts["queries"],
        "n_judgments": facts["judgments"],
        "n_documents": sum(row["documents"] for row in tables["documents"]),
        "reach": min(200, 10 * (max(20, *reach) // 10 + 1)),
        "baseline": settings(tables)["baseline source"],
        "other": short(first["other"], tables),
        "design": facts["design"],
        "correction": {"holm": "Holm", "bh": "Benjamini–Hochberg"}.get(
            settings(tables)["correction"]
        ),
    }
    if len({row["other"] for row in deployed(tables)}) > 1:
        known["other"] = "another source’s"
    return all(
        known[name] == pytest.approx(value) if isinstance(value, float) else known[name] == value
        for name, value in finding.numbers.items()
        if f"{{{name}" in finding.code.template and not isinstance(value, Finding)
    )


def about_a_case(finding: Finding, tables: Tables) -> bool:
    n = finding.numbers
    return any(
        (row["query"],) == finding.cases
        and (row["rank_baseline"], row["rank_other"]) == (n["rank"], n["rank_other"])
        for row in tables["cases"]
    )


RULES: dict[SourceCode, Callable[[Finding, Tables], bool]] = {
    **dict.fromkeys(
        (
            SourceCode.FAVOURS_BASELINE,
            SourceCode.FAVOURS_OTHER,
            SourceCode.ALIKE,
            SourceCode.CANNOT_TELL,
            SourceCode.PLAIN_FAVOURS_BASELINE,
            SourceCode.PLAIN_FAVOURS_OTHER,
            SourceCode.PLAIN_ALIKE,
            SourceCode.PLAIN_CANNOT_TELL,
            SourceCode.PLAIN_NEEDED,
        ),
        about_a_verdict,
    ),
    **dict.fromkeys(
        (
            SourceCode.FAVOURS_BASELINE_BUT,
            SourceCode.FAVOURS_OTHER_BUT,
            SourceCode.PLAIN_FAVOURS_BASELINE_BUT,
            SourceCode.PLAIN_FAVOURS_OTHER_BUT,
        ),
        about_a_doubted_verdict,
    ),
    SourceCode.FAVOURED_TEXT_BUT: about_a_short_doubt,
    SourceCode.CONTRARY: about_how_many_are_doubted,
    SourceCode.SHOWN: about_what_is_shown,
    SourceCode.REACH: about_the_first_axis,
    SourceCode.MORE_BELOW: about_what_is_below,
    SourceCode.OPEN_NEEDED: in_a_row("verdicts", n_needed="n_needed"),
    SourceCode.TESTED: about_a_test,
    SourceCode.ADJUSTED: about_a_test,
    SourceCode.NEEDED: in_a_row("verdicts", n_needed="n_needed"),
    SourceCode.CONTROL: about_a_control,
    SourceCode.HARDER: about_what_is_harder,
    SourceCode.HARDER_FOR_SOME: about_what_is_harder,
    SourceCode.REPEAT: about_a_repeat,
    SourceCode.REPEAT_TURNS: about_a_repeat,
    SourceCode.SEVERAL: about_several,
    SourceCode.PAIRS: about_a_count,
    SourceCode.QUERIES: about_a_count,
    SourceCode.RANKS: about_a_case,
    **dict.fromkeys(
        (
            SourceCode.SCOPE,
            SourceCode.SCOPE_CORRECTED,
            SourceCode.SIZE,
            SourceCode.CARDS,
            SourceCode.EFFECT,
            SourceCode.STAR,
            SourceCode.STAR_UNCORRECTED,
            SourceCode.EXPLORATORY,
            SourceCode.CUTOFFS,
            SourceCode.DECISION,
            SourceCode.NOISE,
            SourceCode.COVERAGE,
            SourceCode.FAMILY,
            SourceCode.HOLM,
            SourceCode.BH,
            SourceCode.NONE,
            SourceCode.SIGN,
            SourceCode.DELTA,
        ),
        about_the_report,
    ),
}
#: Sentences of names only, and those that are stored with a run as they are.
NAMES_ONLY = {
    SourceCode.AGAINST, SourceCode.APPROXIMATE, SourceCode.CASE, SourceCode.CASES,
    SourceCode.FAVOURED_TEXT, SourceCode.HIGHER, SourceCode.MISSING,
    SourceCode.NEXT_CHECK, SourceCode.NEXT_EXPLAIN, SourceCode.NEXT_REWRITE, SourceCode.ONE_WAY,
    SourceCode.REPEATED_SYSTEM, SourceCode.SEARCHED_ALONE, SourceCode.SEARCHED_RESTRICTED,
    SourceCode.SLOPES, SourceCode.SUBJECT, SourceCode.TIES_AVERAGED,
}  # fmt: skip


def problems(findings: list[Finding], tables: Tables) -> list[str]:
    return [
        f"{finding.code.name}: {finding}"
        for finding in findings
        if finding.code in RULES and not RULES[finding.code](finding, tables)
    ]


@pytest.mark.parametrize("seed", range(N_REPORTS))
def test_sentences_follow_from_the_tables(seed: int) -> None:
    report = report_of(seed)
    assert problems(list(findings_in(report.page())), tables_of(report)) == []


def test_every_sentence_with_numbers_has_a_rule() -> None:
    met = {
        finding.code for seed in range(N_REPORTS) for finding in findings_in(report_of(seed).page())
    }
    bare = {code for code in SourceCode if "{" not in code.template}
    own = {code for code in met if isinstance(code, SourceCode)}
    assert own - set(RULES) - NAMES_ONLY - bare == set()
    assert len(own & set(RULES)) > 30


def spoiled(finding: Finding) -> Iterator[Finding]:
    """Yield a finding with another number in place of each that its sentence shows."""
    for name, value in finding.numbers.items():
        if f"{{{name}" not in finding.code.template or value is None:
            continue
        if isinstance(value, str | Finding):
            continue
        if isinstance(value, Interval):
            other: Any = dataclasses.replace(value, upper=value.upper + 7.25)
        else:
            other = value + 3
        yield finding.code(cases=finding.cases, **{**finding.numbers, name: other})


def test_another_number_is_found() -> None:
    for seed in range(N_REPORTS):
        report, tables = report_of(seed), tables_of(report_of(seed))
        for finding in findings_in(report.page()):
            if finding.code in RULES:
                for wrong in spoiled(finding):
                    assert problems([wrong], tables), f"{finding.code.name} {wrong}"


def picture_problems(first: First, tables: Tables) -> list[str]:
    """Say which line of the first screen does not repeat a verdict of the table, or its bar."""
    rows, reach = deployed(tables)[:6], first_reach(tables)
    if len(first.rows) != len(rows):
        return [f"{len(first.rows)} lines for {len(rows)} comparisons"]
    wrong = []
    for line, row in zip(first.rows, rows, strict=True):
        delta = row["centred_delta"]
        if line.text != Wording().format_field(delta, "signed"):
            wrong.append(f"{line.text} is not {delta}")
        if isinstance(delta, Interval):
            places = [50 + 50 * x / reach for x in (delta.lower, delta.estimate, delta.upper)]
            left, dot, right = (min(100.0, max(0.0, place)) for place in places)
            shown = (line.bar.left, line.bar.dot, line.bar.left + line.bar.width)
            if shown != pytest.approx((left, dot, right), abs=0.02):
                wrong.append(f"{shown} is not {(left, dot, right)}")
    return wrong


@pytest.mark.parametrize("seed", range(N_REPORTS))
def test_the_picture_of_a_first_screen_follows_from_the_verdicts(seed: int) -> None:
    report = report_of(seed)
    assert picture_problems(report.page().first, tables_of(report)) == []


def test_another_picture_is_found() -> None:
    report = report_of(0)
    first, tables = report.page().first, tables_of(report)
    line = first.rows[0]
    moved = dataclasses.replace(line.bar, dot=line.bar.dot + 1)
    for wrong in (dataclasses.replace(line, bar=moved), dataclasses.replace(line, text="+1.0")):
        rows = (wrong, *first.rows[1:])
        assert picture_problems(dataclasses.replace(first, rows=rows), tables)
    assert picture_problems(dataclasses.replace(first, rows=()), tables)


@pytest.mark.parametrize("seed", range(3))
def test_one_figure_stands_for_one_quantity(seed: int) -> None:
    """Nothing that is brief, and no picture, shows the published figure beside the centred one."""
    report = report_of(seed)
    tables = tables_of(report)
    verdicts = next(part for part in report.page().sections if part.id == "verdicts")
    (scores,) = (block.frame for block in verdicts.blocks if isinstance(block, Table))
    centred = {
        (row["system"], row["measure"], row["mean_other"]): row["centred_delta"]
        for row in tables["delta"]
        if row["variant"] == "mixed"
    }
    for row in rows_of(scores):
        figure = centred[row["system"], row["measure"], row["mean_other"]]
        assert row["centred_delta"] == getattr(figure, "estimate", figure)
    assert "relative_delta" not in scores.columns
    holding = [name for name, frame in report.frames.items() if "relative_delta" in frame.columns]
    assert holding == ["delta"]
    assert report.frames["delta"].heads["relative_delta"] == "published Δ"
