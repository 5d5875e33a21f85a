"""Do the tables and figures of the papers come out, and where not, what is missing?

    python benchmarks/reproduce/run.py [--only ID …] [--list] [--run] [--output FILE] [--page FILE]

One YAML file per table or figure in this folder says what was published, where our figures come
from, what they need and what they are held to (see entries.py and needs.py; a new file needs no
change here). Every check is first made on the published figures themselves, where it names a shape:
a shape that the paper does not have is no shape to ask of us. Every check of ours is then made on
its control too, which comes from something broken and must not pass. Prints the published figures
beside ours and one line per check: OK, OKish (within the wider tolerance), FAIL, CANNOT TELL (the
interval is too wide for either), or SKIPPED with the reason; what was not run is never OK. Writes
benchmarks/results/reproduce.json, and with --page a page of results (--redraw: from the stored
results, running nothing); --only ID … --update makes these entries and judges the others on what is
stored of them. Exit status 1 when a check fails that is not known to, with the reason written
beside it, or when a control passes or could not be made.

RAG_SOURCEBIAS_DATA names the folder of real data sets, RAG_SOURCEBIAS_MODELS one of models;
vectors and perplexities are kept in the cache folder of the library.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from checks import PASSED, SHAPES, chance, verdict
from controls import CHANGES
from entries import RESULTS, Check, Entry, NotMadeError, Series, Source, load, read_entry
from evidence import csv_text
from evidence import write as publish
from needs import unmet
from tables import figures, page, tables

from rag_sourcebias.core.codec import environment

HERE = Path(__file__).resolve().parent


def entries(only: Iterable[str] = (), folder: Path = HERE) -> list[Entry]:
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    unknown = [name for name in only if name not in files]
    if unknown:
        raise SystemExit(f"no entry {', '.join(unknown)}; there are {', '.join(files)}")
    return [read_entry(files[name]) for name in (list(only) or files)]


def made(entry: Entry, *, results: Path = RESULTS) -> dict[str, Series | str]:
    """Our series by name; in place of one that is not there, why."""
    found: dict[str, Series | str] = {}
    for name, source in entry.ours.items():
        try:
            found[name] = load(source, results=results)
        except NotMadeError as error:
            found[name] = str(error)
    return found


def judged(
    entry: Entry, *, results: Path = RESULTS, ours: Mapping[str, Series | str] | None = None
) -> list[dict]:
    """One row per check and series of ours."""
    ours = made(entry, results=results) if ours is None else ours
    rows = []
    for check in entry.checks:
        if why := check.skip or "; ".join(unmet(check.needs)):
            rows.append(line(entry, check, ", ".join(check.series), "SKIPPED", why))
            continue
        if not check.series:
            rows.append(line(entry, check, "", "SKIPPED", "nothing of ours is named for it"))
        for name in check.series:
            series = ours[name]
            if isinstance(series, str):
                rows.append(line(entry, check, name, "SKIPPED", series))
                continue
            found, numbers = verdict(check, series, entry.published)
            why = f"{numbers} ({series.note})" if series.note else numbers
            row = line(entry, check, name, found, why)
            row["control"] = controlled(entry, check, series, results=results)
            by_chance = chance(check, series, entry.published)
            if by_chance is not None:
                row["chance"] = by_chance
            if check.because and found == "FAIL":
                row["because"] = check.because
            rows.append(row)
    return rows


def controlled(entry: Entry, check: Check, series: Series, *, results: Path = RESULTS) -> dict:
    """The same check on what it must reject."""
    told = {"is": check.control}
    if check.control in CHANGES:
        spoilt = CHANGES[check.control](series)
    else:
        try:
            spoilt = load(entry.controls[check.control], results=results)
        except NotMadeError as error:
            return told | {"verdict": "SKIPPED", "why": str(error)}
    found, why = verdict(check, spoilt, entry.published)
    return told | {"verdict": found, "why": why}


def broken(row: Mapping) -> bool:
    """Whether a check that was made lets its control pass, or could not be tried on it."""
    return "control" in row and row["control"]["verdict"] in (*PASSED, "SKIPPED")


def published(entry: Entry) -> list[dict]:
    """The shapes that are asked of us, on the paper's own figures."""
    rows = []
    for check in entry.checks:
        if check.kind in SHAPES and check.series:
            for name, series in entry.published.items():
                if check.published is None or name in check.published:
                    found, numbers = verdict(check, series, entry.published, printed=True)
                    rows.append(line(entry, check, f"published, {name}", found, numbers))
    return rows


def line(entry: Entry, check: Check, series: str, found: str, why: str) -> dict:
    return {
        "entry": entry.id,
        "check": check.kind,
        "grade": check.grade.value,
        "own": check.own or entry.id.startswith("o-"),
        "says": check.says,
        "series": series,
        "verdict": found,
        "why": why,
    }


def make(wanted: Iterable[Source]) -> None:
    """Run what makes our figures, each command once."""
    for command in dict.fromkeys(source.command for source in wanted if source.command):
        done = subprocess.run([sys.executable, *command], cwd=HERE.parent, check=False)
        if done.returncode:
            print(f"{' '.join(command)} ended with status {done.returncode}", file=sys.stderr)


def listed(found: Iterable[Entry]) -> str:
    """Every entry with what it lacks here."""
    lines = []
    for entry in found:
        lines.append(
            f"{entry.id}: {entry.paper}; {entry.what} "
            f"({len(entry.checks)} checks on {', '.join(entry.ours) or 'nothing of ours'})"
        )
        for name, source in entry.ours.items():
            missing = "; ".join(unmet(source.needs))
            lines.append(f"    {name}: {f'not here: {missing}' if missing else 'can be made'}")
        for check in entry.checks:
            if why := check.skip or "; ".join(unmet(check.needs)):
                lines.append(f"    {check.says}: not here: {why}")
    return "\n".join(lines)


def shown(row: dict) -> str:
    known = f" Known to fail: {row['because']}" if "because" in row else ""
    if broken(row):
        known += f" BROKEN: the control passes or was not made: {row['control']}"
    told = f"{row['entry']}: {row['says']} [{row['series']}]: {row['why']}{known}"
    return f"{row['verdict']:12}{row['grade']}: {told}"


def stored(entry: Entry, ours: Mapping[str, Series | str]) -> dict:
    """An entry as the results hold it."""
    return {
        "paper": entry.paper,
        "what": entry.what,
        "conditions": entry.conditions,
        "published": {name: series.plain() for name, series in entry.published.items()},
        "ours": {
            name: {"why": found} if isinstance(found, str) else found.plain()
            for name, found in ours.items()
        },
    }


def write(path: Path, record: dict) -> None:
    """One line per series and per row, so that a change of one figure shows as such."""
    parts = [f'"environment": {compact(record["environment"])}']
    parts += [f'"{key}": {compact(record[key])}' for key in ("seconds", "kept")]
    blocks = []
    for name, entry in record["entries"].items():
        fields = [f'   "{key}": {compact(entry[key])}' for key in ("paper", "what", "conditions")]
        for side in ("published", "ours"):
            lines = [f"    {compact(k)}: {compact(v)}" for k, v in entry[side].items()]
            inner = "{\n" + ",\n".join(lines) + "\n   }" if lines else "{}"
            fields.append(f'   "{side}": {inner}')
        blocks.append(f'  "{name}": {{\n' + ",\n".join(fields) + "\n  }")
    parts.append('"entries": {\n' + ",\n".join(blocks) + "\n }")
    for key in ("published", "rows"):
        parts.append(f'"{key}": [\n  ' + ",\n  ".join(map(compact, record[key])) + "\n ]")
    path.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


def compact(value: object) -> str:
    return json.dumps(rounded(value), ensure_ascii=False)


def rounded(value: object) -> object:
    """Floats with six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value


def kept(entry: Entry, record: Mapping) -> dict[str, Series | str]:
    """Our series as an earlier run stored them."""
    old = record["entries"].get(entry.id, {"ours": {}})["ours"]
    unknown = {"why": "an earlier run was kept, which did not make it"}
    found = {name: old.get(name, unknown) for name in entry.ours}
    return {name: one["why"] if "why" in one else Series.of(one) for name, one in found.items()}


def run_all(
    found: list[Entry], *, brief: bool, only: Iterable[str] = (), record: Mapping | None = None
) -> dict:
    """Make every series once, judge, and print.

    With the ``record`` of an earlier run, only the entries of ``only`` are made and the rest are
    judged on what was stored.
    """
    start = time.perf_counter()
    only = set(only)
    old = [entry.id for entry in found if record is not None and entry.id not in only]
    stores, theirs, rows = {}, [], []
    for entry in found:
        ours = kept(entry, record) if record is not None and entry.id in old else made(entry)
        theirs += published(entry)
        mine = judged(entry, ours=ours)
        rows += mine
        stores[entry.id] = stored(entry, ours)
        if not brief:
            print(f"\n{entry.id}: {entry.paper}; {entry.what}\n")
            print(csv_text(figures(entry.id, stores[entry.id])))
        for row in mine:
            print(shown(row))
    return {
        "environment": environment(),
        "seconds": round(time.perf_counter() - start, 1),
        "kept": old,
        "entries": stores,
        "published": theirs,
        "rows": rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Published tables and figures against ours.")
    parser.add_argument("--list", action="store_true", help="name the entries and end")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="entries to check")
    parser.add_argument(
        "--update", action="store_true", help="with --only: keep what is stored of the others"
    )
    parser.add_argument("--run", action="store_true", help="make the result files first (hours)")
    parser.add_argument("--brief", action="store_true", help="print the checks without the tables")
    parser.add_argument("--published", action="store_true", help="print shapes of the papers too")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/reproduce.json")
    parser.add_argument("--page", type=Path, help="also write a page of results")
    parser.add_argument("--redraw", action="store_true", help="only the page, from stored results")
    options = parser.parse_args()
    usual = RESULTS / "reproduce.json"
    whole = options.update or not options.only
    output = options.output or (usual if whole else None)
    if options.redraw:
        record = json.loads((output or usual).read_text(encoding="utf-8"))
    else:
        found = entries([] if options.update else options.only)
        if options.list:
            print(listed(found))
            return 0
        if options.run:
            make(source for entry in found for source in entry.ours.values())
        old = json.loads((output or usual).read_text(encoding="utf-8")) if options.update else None
        record = run_all(found, brief=options.brief, only=options.only, record=old)
        if options.published:
            print("\n".join(map(shown, record["published"])))
        if output is not None:
            write(output, record)
            record = json.loads(output.read_text(encoding="utf-8"))
    if options.page is not None:
        publish(options.page, page(record), tables(record))
    unknown = any(r["verdict"] == "FAIL" and "because" not in r for r in record["rows"])
    return int(unknown or any(map(broken, record["rows"])))


if __name__ == "__main__":
    sys.exit(main())
