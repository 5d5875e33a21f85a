"""Published figures beside ours, as tables, and the page of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["page", "table"]

ROWS = 12
LONG = 40
VERDICTS = ("OK", "OKish", "CANNOT TELL", "FAIL", "SKIPPED")
PASSED = ("OK", "OKish")
GROUPS = (
    ("k-", "[K] Dai et al., KDD 2024: Neural Retrievers are Biased Towards LLM-Generated Content"),
    (
        "r-",
        "[R] Oosterhuis et al., KDD 2024: Reliable Confidence Intervals for Information Retrieval "
        "Evaluation Using Generative A.I.",
    ),
    ("w-", "[W] Cao, WSDM 2025: Writing Style Matters"),
    ("o-", "Figures of our own, measured before this code, and by other code"),
)
Column = Mapping[str, Any]


def table(entry: Mapping[str, Any]) -> str:
    """Markdown tables of an entry: one per set of rows."""
    columns = [(f"published: {name}", series) for name, series in entry["published"].items()]
    missing = []
    for name, series in entry["ours"].items():
        if "why" in series:
            missing.append(f"not made: {name}: {series['why']}")
        else:
            columns.append((f"ours: {name}", series))
    parts = [one_table(group) for group in grouped(columns)]
    if missing:
        parts.append("\n".join(f"- {text}" for text in missing))
    return "\n\n".join(parts) + "\n"


def grouped(columns: Iterable[tuple[str, Column]]) -> list[list[tuple[str, Column]]]:
    """Columns that share a value of x stand in one table."""
    groups: list[list[tuple[str, Column]]] = []
    for name, series in columns:
        x = {key(v) for v in series["x"]}
        for group in groups:
            if any(x & {key(v) for v in other["x"]} for _, other in group):
                group.append((name, series))
                break
        else:
            groups.append([(name, series)])
    return groups


def one_table(columns: Sequence[tuple[str, Column]]) -> str:
    order = list(dict.fromkeys(key(x) for _, series in columns for x in series["x"]))
    order = sorted(order, key=float) if all(map(numeric, order)) else order
    rows = thinned(order)
    lines = [
        f"| | {' | '.join(escaped(name) for name, _ in columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    cells = [{key(x): i for i, x in enumerate(series["x"])} for _, series in columns]
    for x in rows:
        values = [
            shown(series, places[x]) if x in places else ""
            for (_, series), places in zip(columns, cells, strict=True)
        ]
        lines.append(f"| {escaped(x)} | {' | '.join(values)} |")
    if len(rows) < len(order):
        lines.append(f"\n{len(rows)} of {len(order)} rows.")
    return "\n".join(lines)


def thinned(order: list[str]) -> list[str]:
    """At most some rows of a curve or of a long table, its ends among them."""
    if len(order) <= ROWS or (len(order) <= LONG and not all(map(numeric, order))):
        return order
    steps = [round(i * (len(order) - 1) / (ROWS - 1)) for i in range(ROWS)]
    return [order[i] for i in dict.fromkeys(steps)]


def shown(series: Column, i: int) -> str:
    value = number(series["y"][i])
    if series.get("lower") and series["lower"][i] is not None:
        return f"{value} [{number(series['lower'][i])}, {number(series['upper'][i])}]"
    return value


def number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def key(x: object) -> str:
    return f"{x:g}" if isinstance(x, int | float) and not isinstance(x, bool) else str(x)


def numeric(x: str) -> bool:
    try:
        float(x)
    except ValueError:
        return False
    return True


def escaped(text: str) -> str:
    return str(text).replace("|", "\\|")


def page(record: Mapping[str, Any]) -> str:
    """The results page, from a stored record."""
    rows = record["rows"]
    by_entry: dict[str, list[dict]] = {name: [] for name in record["entries"]}
    for row in rows:
        by_entry[row["entry"]].append(row)
    parts = [HEAD, summary(record, by_entry)]
    for prefix, title in GROUPS:
        names = [name for name in by_entry if name.startswith(prefix)]
        if names:
            parts.append(f"## {title}")
            parts += [section(name, record["entries"][name], by_entry[name]) for name in names]
    return "\n\n".join(part.strip() for part in parts) + "\n"


HEAD = """\
# Do the papers' tables and figures come out?

Written by `python benchmarks/reproduce/run.py --page docs/results.md`; do not edit it by hand.

One entry per table, figure and identity of the three papers this library builds on. Published
figures stand beside ours, made on data and models that can be had here, which are mostly not the
papers'. A check is **OK**, **OKish** (within the wider tolerance that the entry names) or **FAIL**,
with what is known about it; **CANNOT TELL** where the interval is too wide for either; **SKIPPED**
where something is missing: the same command runs it once that is there."""

GRADES = {
    "same data and model": "the published number, from the same data with the same model",
    "other data, interval excludes zero": (
        "the published sign or bound, on other data or with other models, by a 95 % interval that "
        "excludes zero, or lies inside the bounds, at every point asked"
    ),
    "sign only": (
        "a sign, an order, a shape or a nearby value, on other data or with other models, without "
        "an interval to exclude chance"
    ),
    "identity": (
        "arithmetic, a definition or a prompt of the paper; a simulation built to match a number"
    ),
}


def summary(record: Mapping[str, Any], by_entry: Mapping[str, list[dict]]) -> str:
    rows = record["rows"]
    papers = [row for row in rows if not row["own"]]
    own = [row for row in rows if row["own"]]
    lines = ["## How hard the tests were", "", headline(papers), "", *graded(papers), ""]
    lines += [
        "The same for what no paper claims: figures of our own, measured earlier by other code, "
        "and what we ask of the library's methods and data beyond the papers:"
    ]
    lines += ["", *graded(own)]
    lines += ["", controls(rows), "", "## Entries", ""]
    lines += [f"| entry | what | {' | '.join(VERDICTS)} |", f"|---|---|{'---|' * len(VERDICTS)}"]
    for name, found in by_entry.items():
        what = record["entries"][name]["what"]
        lines.append(f"| [{name}](#{name}) | {escaped(what)} | {counts(found)} |")
    lines += ["", "## What is missing, and what fails", ""]
    lines += reasons(rows)
    software = ", ".join(f"{k} {v}" for k, v in record["environment"].items() if k != "machine")
    lines += ["", f"Made with {software} on {record['environment'].get('machine', 'a machine')}."]
    if record.get("kept"):
        lines += ["", f"Series of an earlier run: {', '.join(record['kept'])}."]
    return "\n".join(lines)


def headline(rows: Sequence[dict]) -> str:
    """What the checks of the papers add up to, the hardest first."""
    same, interval, sign, identity = (
        Counter(row["verdict"] for row in rows if row["grade"] == grade) for grade in GRADES
    )
    by_chance = [row["chance"] for row in rows if "chance" in row]
    passed = sum(row["verdict"] in PASSED for row in rows if "chance" in row)
    told = [
        f"**On the papers' own data with their own models, {made(same)} of {same.total()} checks "
        f"could be made here{f', {agreed(same)} passed' if made(same) else ''}.**",
        f"On other data or with other models, {agreed(interval)} of {made(interval)} checks agree "
        f"with the paper by their interval, {interval['FAIL']} disagree, and for "
        f"{interval['CANNOT TELL']} the interval cannot tell. "
        f"Of the checks without an interval, {agreed(sign)} of {made(sign)} agree; "
        f"{passed} of {len(by_chance)} that ask for a sign or an order, where coins and random "
        f"orders would pass {sum(by_chance):.0f}.",
        f"{agreed(identity)} of {made(identity)} identities hold. A pass on an identity is not a "
        "reproduction.",
    ]
    return "\n\n".join(told)


def made(found: Counter) -> int:
    return found.total() - found["SKIPPED"]


def agreed(found: Counter) -> int:
    return sum(found[verdict] for verdict in PASSED)


def graded(rows: Sequence[dict]) -> list[str]:
    """Verdicts by grade."""
    lines = [
        f"| grade | what is asked | {' | '.join(VERDICTS)} |",
        f"|---|---|{'---|' * len(VERDICTS)}",
    ]
    for grade, what in GRADES.items():
        lines.append(f"| {grade} | {what} | {counts([r for r in rows if r['grade'] == grade])} |")
    return lines


def counts(rows: Iterable[dict]) -> str:
    found = Counter(row["verdict"] for row in rows)
    return " | ".join(str(found[v]) if found[v] else "" for v in VERDICTS)


def controls(rows: Iterable[dict]) -> str:
    """How many checks reject what they must reject."""
    tried = [row["control"]["verdict"] for row in rows if "control" in row]
    rejected = sum(verdict in ("FAIL", "CANNOT TELL") for verdict in tried)
    return (
        "Every check that was made was also made on a control, which comes from something broken: "
        "labels shuffled, a random reranker, a constant encoder, values out of order, a wrong "
        f"formula. {rejected} of {len(tried)} controls were rejected."
    )


def reasons(rows: Iterable[dict]) -> list[str]:
    """Every reason for which something was skipped, with the entries, then every failure."""
    rows = list(rows)
    skipped: dict[str, list[str]] = {}
    for row in rows:
        if row["verdict"] == "SKIPPED":
            skipped.setdefault(row["why"], []).append(row["entry"])
    lines = ["| SKIPPED because | checks | entries |", "|---|---|---|"]
    for why, names in sorted(skipped.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {escaped(why)} | {len(names)} | {', '.join(dict.fromkeys(names))} |")
    failed = [row for row in rows if row["verdict"] == "FAIL"]
    if failed:
        lines += ["", "| FAIL | measured | why |", "|---|---|---|"]
        for row in failed:
            why = row.get("because", "not explained")
            what = f"{row['entry']}: {row['says']} ({row['series']})"
            lines.append(f"| {escaped(what)} | {escaped(row['why'])} | {escaped(why)} |")
    return lines


def section(name: str, entry: Mapping[str, Any], rows: Iterable[dict]) -> str:
    lines = [f"### {name}", "", entry["what"], ""]
    for side, found in entry["conditions"].items():
        told = found if isinstance(found, str) else "; ".join(f"{k}: {v}" for k, v in found.items())
        lines.append(f"- {side}: {' '.join(told.split())}")
    lines += ["", table(entry).strip(), ""]
    lines += ["| check | series | grade | | | control |", "|---|---|---|---|---|---|"]
    for row in rows:
        cells = (row["says"], row["series"], row["grade"], f"**{row['verdict']}**", row["why"])
        by_chance = f"; by chance {row['chance']:.2g}" if "chance" in row else ""
        told = "" if "control" not in row else control_of(row["control"])
        texts = (*cells[:-1], f"{cells[-1]}{by_chance}", told)
        lines.append(f"| {' | '.join(escaped(text) for text in texts)} |")
    known = dict.fromkeys(row["because"] for row in rows if "because" in row)
    lines += [f"\n{' '.join(text.split())}" for text in known]
    return "\n".join(lines)


def control_of(control: Mapping[str, str]) -> str:
    return f"{control['is']}: {control['verdict']} ({control['why']})"
