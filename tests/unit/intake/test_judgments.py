"""Judgments, queries and corpora are read alike from every carrier that people have them in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import polars as pl
import pytest
from command_line import refused, succeed

import rag_sourcebias as rsb
from rag_sourcebias.core.data import DocTags, Qrels
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.beir import splits_of
from rag_sourcebias.intake.documents import as_corpus, read_documents, read_queries, read_tags
from rag_sourcebias.intake.judgments import read_qrels

ROWS = [("7", "11", 2), ("7", "12", 0), ("8", "11", 1)]
TABLE = {"query-id": [7, 7, 8], "corpus-id": [11, 12, 11], "score": [2, 0, 1]}


def lines(form: str, head: str = "", end: str = "\n") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        text = head + "".join(form.format(q=q, d=d, g=g) + end for q, d, g in ROWS)
        (folder / "qrels.txt").write_text(text, encoding="utf-8", newline="")
        return folder / "qrels.txt"

    return write


def parquet(frame: pd.DataFrame) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        frame.to_parquet(folder / "qrels.parquet")
        return folder / "qrels.parquet"

    return write


CARRIERS: dict[str, Callable[[Path], Any]] = {
    "TREC": lines("{q} 0 {d} {g}"),
    "TREC with tabs": lines("{q}\t0\t{d}\t{g}"),
    "three columns": lines("{q} {d} {g}"),
    "BEIR": lines("{q}\t{d}\t{g}", "query-id\tcorpus-id\tscore\n"),
    "Windows": lines("{q}\t{d}\t{g}", "\ufeffquery-id\tcorpus-id\tscore\r\n", "\r\n"),
    "MS MARCO's names": lines("{q}\t{d}\t{g}", "qid\tpid\trel\n"),
    "four names": lines("{q}\t0\t{d}\t{g}", "query_id\titer\tdoc_id\trelevance\n"),
    "names in another order": lines("{g},{d},{q}", "relevance,docno,qid\n"),
    "commas alone": lines("{q},{d},{g}"),
    "blanks under names": lines("{q} {d} {g}", "query-id corpus-id score\n"),
    "fractions that are whole": lines("{q} 0 {d} {g}.0"),
    "JSON lines": lines('{{"query_id": {q}, "doc_id": "{d}", "relevance": {g}}}'),
    "Parquet": parquet(pd.DataFrame(TABLE)),
    "Parquet of fractions": parquet(pd.DataFrame(TABLE).astype(float)),
    "pandas": lambda _: pd.DataFrame(TABLE),
    "pandas of fractions": lambda _: pd.DataFrame(TABLE).astype(float),
    "polars": lambda _: pl.DataFrame(TABLE),
    "columns": lambda _: TABLE,
    "Dataset": lambda _: datasets.Dataset.from_dict(TABLE),
    "streamed Dataset": lambda _: datasets.Dataset.from_dict(TABLE).to_iterable_dataset(),
    "dictionary of ints": lambda _: {7: {11: 2, 12: 0}, 8: {11: 1}},
    "tuples": lambda _: ROWS,
}


def rows_of(qrels: Qrels) -> list[tuple[str, str, int]]:
    codes = zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    return [(qrels.query_ids[q], qrels.doc_ids[d], int(g)) for q, d, g in codes]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_judgments_are_the_same_from_every_carrier(carrier: str, tmp_path: Path) -> None:
    assert rows_of(read_qrels(CARRIERS[carrier](tmp_path))) == ROWS


@pytest.mark.parametrize("grades", [[0.5, 1.0, 0.0], ["0.50", "1", "0"]])
def test_fractional_gains_are_scaled_or_refused_and_never_cut(grades: list[Any]) -> None:
    judged = pd.DataFrame({"query_id": ["a"] * 3, "doc_id": list("xyz"), "relevance": grades})
    with pytest.raises(DataError, match=r"multiply all grades by 2.*grade_scale=2"):
        read_qrels(judged)
    assert [grade for *_, grade in rows_of(read_qrels(judged, scale=2))] == [1, 2, 0]


def test_fractional_gains_of_files_are_scaled_by_an_option(tmp_path: Path) -> None:
    files = {
        "a.run": "".join(
            f"q{i} Q0 {s}{i} {r} {-r} a\n" for i in range(20) for r, s in enumerate("hl")
        ),
        "qrels": "".join(f"q{i} 0 {s}{i} .5\n" for i in range(20) for s in "hl"),
        "tags.csv": "doc_id,source\n"
        + "".join(f"{s}{i},{k}\n" for i in range(20) for s, k in (("h", "human"), ("l", "llm:x"))),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = ("audit", "source", "--run", "a.run", "--qrels", "qrels", "--tags", "tags.csv")
    assert "grade '.5' is not a whole number" in refused(*command, cwd=tmp_path)
    assert "favours human text" in succeed(*command, "--grade-scale", "2", cwd=tmp_path)


@pytest.mark.parametrize("value", ["1e400", "nan", "-inf", "high", "0.123456"])
def test_what_is_no_grade_is_refused_with_its_line(value: str, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(f"a 0 x 1\na 0 y {value}\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"qrels:2: .*grade '{value}' is not a whole number"):
        read_qrels(tmp_path / "qrels")


N = 30
PAIRS = [(i, source) for i in range(N) for source in ("human", "llm:x")]
CORPUS = pd.DataFrame(
    [
        {"_id": f"{i}@{s}", "title": "", "text": f"river {i} floods {s}", "source": s}
        for i, s in PAIRS
    ]
)
QUERIES = pd.DataFrame([{"_id": f"q{i}", "title": "", "text": f"river {i}"} for i in range(N)])
QRELS = pd.DataFrame([{"query-id": f"q{i}", "corpus-id": f"{i}@{s}", "score": 1} for i, s in PAIRS])


def write_hub(folder: Path, judgments: str) -> None:
    for part, frame in (("corpus", CORPUS), ("queries", QUERIES)):
        (folder / part).mkdir(parents=True)
        for at in range(2):
            name = f"{part}-0000{at}-of-00002.parquet"
            frame.iloc[at::2].to_parquet(folder / part / name, index=False)
    (folder / judgments).parent.mkdir(exist_ok=True)
    if judgments.endswith(".parquet"):
        QRELS.to_parquet(folder / judgments, index=False)
    else:
        QRELS.to_csv(folder / judgments, sep="\t", index=False)


@pytest.mark.parametrize(
    "judgments",
    ["qrels/test.tsv", "qrels/test-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"],
)
def test_a_folder_of_the_hub_is_a_data_set(judgments: str, tmp_path: Path) -> None:
    write_hub(tmp_path / "hub", judgments)
    assert list(splits_of(tmp_path / "hub")) == ["test"]
    report = rsb.audit("bm25", tmp_path / "hub")
    parts = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}
    same = rsb.audit("bm25", parts)
    assert report.data.documents == same.data.documents == {"human": N, "llm:x": N}
    assert report.verdict == same.verdict
    said = succeed("start", "hub", "--dry-run", cwd=tmp_path)
    assert "audit source hub" in said


def test_datasets_and_their_splits_are_taken_as_frames_are() -> None:
    made = {
        name: datasets.Dataset.from_pandas(frame)
        for name, frame in (("corpus", CORPUS), ("queries", QUERIES), ("qrels", QRELS))
    }
    plain = rsb.audit("bm25", {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS})
    split = {
        "corpus": datasets.DatasetDict({"corpus": made["corpus"]}),
        "queries": datasets.DatasetDict({"queries": made["queries"]}),
        "qrels": datasets.DatasetDict({"train": made["qrels"].select([0]), "test": made["qrels"]}),
    }
    for data in (made, split):
        assert str(rsb.audit("bm25", data)) == str(plain)


def test_two_layouts_in_one_folder_are_refused(tmp_path: Path) -> None:
    write_hub(tmp_path / "hub", "qrels/test.tsv")
    (tmp_path / "hub" / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": "x"}) + "\n")
    assert "expected one corpus" in refused("audit", "source", "hub", cwd=tmp_path)


# Tags, documents and queries: a table of each by its carrier.


def frames(rows: list[dict[str, Any]], key: str, cell: str) -> dict[str, Callable[[Path], Any]]:
    """Return what may hold rows: files of every form, frames, columns and dictionaries."""
    frame = pd.DataFrame(rows)

    def file(ending: str, write: Callable[[Path], object]) -> Callable[[Path], Path]:
        def written(folder: Path) -> Path:
            write(folder / f"table{ending}")
            return folder / f"table{ending}"

        return written

    return {
        "CSV": file(".csv", lambda path: frame.to_csv(path, index=False)),
        "TSV": file(".tsv", lambda path: frame.to_csv(path, index=False, sep="\t")),
        "JSON lines": file(".jsonl", lambda to: frame.to_json(to, orient="records", lines=True)),
        "JSON": file(".json", lambda path: frame.to_json(path, orient="records")),
        "Parquet": file(".parquet", frame.to_parquet),
        "pandas": lambda _: frame,
        "polars": lambda _: pl.from_pandas(frame),
        "rows": lambda _: rows,
        "columns": lambda _: frame.to_dict("list"),
        "Dataset": lambda _: datasets.Dataset.from_pandas(frame),
        "dictionary": lambda _: {row[key]: row[cell] for row in rows},
        "dictionary of rows": lambda _: {row[key]: row for row in rows},
    }


FORMS = tuple(frames([], "", ""))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", ["doc_id", "docno", "_id", "corpus-id"])
def test_tags_are_the_same_from_every_carrier(form: str, key: str, tmp_path: Path) -> None:
    rows = [{key: 7, "source": "human"}, {key: 8, "source": "-"}, {key: 9, "source": "llm:x"}]
    found = read_tags(frames(rows, key, "source")[form](tmp_path))
    assert [found.get(doc_id) for doc_id in ("7", "8", "9")] == [
        DocTags(source="human", origin="declared"),
        DocTags(),
        DocTags(source="llm:x", origin="declared"),
    ]
    wrong = [*rows[:1], {key: 7, "source": "llm:x"}]
    if not form.startswith("dictionary"):
        with pytest.raises(DataError, match=r"document '7' stands at .* already"):
            read_tags(frames(wrong, key, "source")[form](tmp_path))


@pytest.mark.parametrize("form", FORMS)
def test_documents_and_queries_are_the_same_from_every_carrier(form: str, tmp_path: Path) -> None:
    rows = [{"_id": 1, "text": " a river "}, {"_id": 2, "text": "a lake"}]
    table = frames(rows, "_id", "text")[form](tmp_path)
    assert dict(as_corpus([read_documents(table)])) == {"1": "a river", "2": "a lake"}
    asked = read_queries(table)
    assert [(query.query_id, query.text) for query in asked] == [("1", "a river"), ("2", "a lake")]
    bare = frames([{"_id": 1, "title": "x"}], "_id", "title")[form](tmp_path)
    if form != "dictionary":
        with pytest.raises(DataError, match="no column is recognised as text"):
            read_documents(bare)
