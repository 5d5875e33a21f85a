"""An audit over shards gives the report of an audit in memory, whatever the shards."""

from __future__ import annotations

import dataclasses
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from sharded_corpora import N_PAIRS, Once, assert_same, paired_data

from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias.retrieval.shards import open_sharded
from rag_sourcebias.source.audit import audit_source
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport
from rag_sourcebias.source.shards.audit import audit_source_sharded
from rag_sourcebias.source.shards.work import LocalEngine, ShardedRetriever


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sharded") / "folder"
    write_beir(paired_data(), path)
    return path


@dataclasses.dataclass
class Made:
    """A recipe that remembers the encoders it made."""

    encoders: list[HashingEncoder] = dataclasses.field(default_factory=list)

    def __call__(self) -> HashingEncoder:
        self.encoders.append(HashingEncoder())
        return self.encoders[-1]

    def calls(self) -> list[list[str]]:
        return [call for one in self.encoders for call in one.calls]


def sharded(folder: Path, work: Path, size: int = 1024, **options: Any) -> SkewReport:
    retriever = options.pop("retriever", None) or ShardedRetriever(
        name="dense", make_encoder=HashingEncoder
    )
    data = open_sharded(folder, shard_documents=options.pop("beneath", size))
    return audit_source_sharded(
        data, [retriever], work_folder=work, shard_documents=size, **options
    )


@pytest.fixture(scope="module")
def in_memory(folder: Path) -> SkewReport:
    return audit_source(read_beir(folder), [DenseSpec(Once(), name="dense")], copies="no")


@pytest.mark.parametrize(("size", "beneath"), [(1024, 1024), (1024, 700), (1, 333), (4096, 9999)])
def test_the_report_is_that_of_an_audit_in_memory(
    folder: Path, tmp_path: Path, in_memory: SkewReport, size: int, beneath: int
) -> None:
    assert_same(in_memory, sharded(folder, tmp_path, size, beneath=beneath))


def test_groups_of_shards_are_merged(
    folder: Path, tmp_path: Path, in_memory: SkewReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for together in (1, 2_048):
        monkeypatch.setattr("rag_sourcebias.source.shards.work._TOGETHER", together)
        assert_same(in_memory, sharded(folder, tmp_path))
    found = sorted(path.name for path in tmp_path.rglob("by-2048/view-0/*.npz"))
    assert found == ["000000.npz", "000000.npz", "000002.npz", "000002.npz"]


def test_the_encoder_gets_the_texts_together_that_it_gets_in_memory(
    folder: Path, tmp_path: Path
) -> None:
    encoder, made = Once(), Made()
    audit_source(read_beir(folder), [DenseSpec(encoder, name="dense")])
    retriever = ShardedRetriever(name="dense", make_encoder=made)
    sharded(folder, tmp_path, 1024, retriever=retriever)
    queries = [call for call in made.calls() if len(call) == 40]
    documents = [call for call in made.calls() if len(call) != 40]
    # the controls ask for the queries again; documents are encoded in the same calls
    assert documents == [call for call in encoder.calls if len(call) != 40]
    assert queries


def test_a_stopped_audit_goes_on(folder: Path, tmp_path: Path, in_memory: SkewReport) -> None:
    class Stopping(LocalEngine):
        def __init__(self, after: int) -> None:
            self.left = after

        def map(self, prepare: Any, items: Any, *, on_done: Any = None) -> Any:
            def prepared() -> Any:
                function = prepare()

                def counted(item: Any) -> Any:
                    if not self.left:
                        raise KeyboardInterrupt
                    self.left -= 1
                    return function(item)

                return counted

            return super().map(prepared, items, on_done=on_done)

    made, stops = Made(), 0
    retriever = ShardedRetriever(name="dense", make_encoder=made)
    for _ in range(60):
        try:
            report = sharded(folder, tmp_path, retriever=retriever, engine=Stopping(7))
            break
        except KeyboardInterrupt:
            stops += 1
            assert not list(tmp_path.rglob(".unfinished*"))
    assert stops >= 2
    assert_same(in_memory, report)
    documents = [text for call in made.calls() if len(call) != 40 for text in call]
    assert len(documents) == len(set(documents)), "a text was encoded twice"


def test_copies_in_different_shards_tie(folder: Path, tmp_path: Path) -> None:
    report = sharded(folder, tmp_path, depth=2 * N_PAIRS, length_matched=False)
    twins = report.systems[0].twins[0]
    # the pair of the first query is a copy, and its versions are 1,500 rows apart
    where = np.flatnonzero(twins.query_index == 0)
    copy = where[np.argmin(twins.baseline_rank[where])]
    assert twins.other_rank[copy] == twins.baseline_rank[copy] < 500
    assert twins.other_above[copy] == 0.5


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="depth 3 is smaller than the largest cutoff 5"):
        sharded(folder, tmp_path, depth=3)
    with pytest.raises(DataError, match="no document has the baseline source 'people'"):
        sharded(folder, tmp_path, config=AuditConfig(baseline_source="people"))
    with pytest.raises(DataError, match="neither an encoder nor vectors"):
        sharded(folder, tmp_path, retriever=ShardedRetriever(name="dense"))
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"cannot be written.*choose another work folder"):
        sharded(folder, blocked)


class Elsewhere(LocalEngine):
    """Work as another machine would: with a folder that lies here it sees nothing, or its own."""

    def __init__(self, folder: Path, other: Path | None = None) -> None:
        self.folder, self.other = folder, other

    def map(self, *args: Any, **options: Any) -> list[Any]:
        here = self.folder.with_name("here")
        self.folder.rename(here)
        if self.other is not None:
            self.other.rename(self.folder)
        try:
            return super().map(*args, **options)
        finally:
            assert self.other is not None or not self.folder.exists()  # nothing was made there
            if self.other is not None:
                self.folder.rename(self.other)
            here.rename(self.folder)


@pytest.mark.parametrize("what", ["missing", "another folder"])
def test_a_work_folder_that_workers_do_not_share_is_named(
    folder: Path, tmp_path: Path, what: str
) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    sharded(folder, other)  # an audit that began there
    engine = Elsewhere(work, other if what == "another folder" else None)
    message = f"work folder {work} is {what} on {platform.node()}: all machines must see it"
    with pytest.raises(DataError, match=re.escape(message)):
        sharded(folder, work, engine=engine)
    sharded(folder, work, engine=LocalEngine())


def test_damaged_files_are_named(folder: Path, tmp_path: Path) -> None:
    sharded(folder, tmp_path)
    for pattern in ("scan/000001.npz", "vectors/*/000000.npy"):
        damaged = max(tmp_path.rglob(pattern), key=lambda path: path.stat().st_size)
        kept = damaged.read_bytes()
        damaged.write_bytes(kept[:100])
        with pytest.raises(DataError, match=rf"{damaged.name} is not a complete .*; delete it"):
            sharded(folder, tmp_path, depth=9)
        damaged.write_bytes(kept)


def test_an_id_in_two_shards_is_refused(tmp_path: Path) -> None:
    data = paired_data()
    texts, ids = list(data.corpus.texts), list(data.corpus.doc_ids)
    lines = [
        f'{{"_id": "{ids[i] if i != 2_900 else ids[7]}", "text": "{texts[i]}", '
        f'"metadata": {{"source": "{"human" if i < N_PAIRS else "llm:x"}"}}}}\n'
        for i in range(len(texts))
    ]
    plain = tmp_path / "plain"
    write_beir(data, plain)
    for file in (plain / "corpus").glob("*"):
        file.unlink()
    (plain / "corpus").rmdir()
    (plain / "corpus.jsonl").write_text("".join(lines), encoding="utf-8")
    (plain / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq0\t0@human\t1\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"document id '7@human' occurs twice in 'plain'"):
        sharded(plain, tmp_path / "work")
    (plain / "corpus.jsonl").write_text(
        "".join(line for i, line in enumerate(lines) if i != 2_900).replace("metadata", "other"),
        encoding="utf-8",
    )
    with pytest.raises(MissingTagsError, match="none of 2999 documents has a source tag"):
        sharded(plain, tmp_path / "work2")
