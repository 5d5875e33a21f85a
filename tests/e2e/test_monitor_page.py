"""What docs/monitor.md shows works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_sourcebias.core.data import DocTags, RankedList

PAGE = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text("utf-8")


@pytest.mark.frameworks
def test_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore
    from prometheus_client import REGISTRY

    monkeypatch.chdir(tmp_path)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(
        [Document(id="a", page_content="a", metadata={"rag_sourcebias_source": "human"})]
    )
    names: dict[str, object] = {"retriever": store.as_retriever()}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    handles = []
    try:
        for block in blocks:
            exec(compile(block, "docs/monitor.md", "exec"), names)
            handles += [
                names[n] for n in ("handle", "spans") if names.get(n) not in (None, *handles)
            ]
        names["retriever"].invoke("a")
        assert (
            REGISTRY.get_sample_value("rag_sourcebias_retrievals_total", {"collection": "docs"})
            == 1
        )
        (state,) = names["monitor"].snapshot()
        assert state.n_retrievals == 1
    finally:
        for handle in handles:
            handle.close()
        names["log"].close()
        for collector in list(REGISTRY._collector_to_names):
            if type(collector).__name__ == "SkewCollector":
                collector.close()


@pytest.mark.frameworks
def test_duckdb_reads_the_archive_with_the_query_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    from rag_sourcebias.observe.events import RetrievalEvent
    from rag_sourcebias.observe.log.event_log import EventLog
    from rag_sourcebias.observe.log.reading import read_events
    from rag_sourcebias.observe.log.writing import write_parquet

    monkeypatch.chdir(tmp_path)
    tags = (DocTags(source="human"), DocTags(source="human"), DocTags(source="llm:x"))
    ranked = RankedList(query_id="", doc_ids=("a", "b", "c"))
    with EventLog("log.db") as log:
        for _ in range(5):
            log.observe(RetrievalEvent(ranked=ranked, tags=tags))
    write_parquet(read_events("log.db"), Path("archive"), log="x")
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
    with duckdb.connect() as database:
        assert dict(database.execute(query).fetchall()) == {"human": 10, "llm:x": 5}
