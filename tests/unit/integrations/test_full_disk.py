"""A disk that is full under the tag store: the application's answers stay, the counter moves."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")
pytest.importorskip("resource")

pytestmark = pytest.mark.frameworks

APPLICATION = """
import resource, signal, sys
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import TextNode
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe import open_tag_store
from rag_sourcebias.tagging import IdTagger
import rag_sourcebias_integrations.langchain as langchain
import rag_sourcebias_integrations.llama_index as llama_index

path, ids = sys.argv[1], [f"d{i}@human" for i in range(2000)]
store = open_tag_store(path)
documents = [Document(id=i, page_content=f"text of {i}") for i in ids]
nodes = [TextNode(id_=i, text=f"text of {i}") for i in ids]
bare = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
bare.add_documents(documents)

# From here on no file may grow: what a full disk says.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

tagger = langchain.SourceTagger([IdTagger()], tags=store)
assert list(tagger.transform_documents(documents)) == documents
assert tagger.dropped.total > 0, "langchain"

tagger = llama_index.SourceTagger([IdTagger()], store=store)
found = tagger(nodes)
assert [n.get_content() for n in found] == [n.get_content() for n in nodes]
assert tagger.dropped.total > 0, "llama_index"

observer = CollectingObserver()
retriever = bare.as_retriever()
expected = retriever.invoke("a")
with instrument("langchain", observer, tags=store) as handle:
    assert retriever.invoke("a") == expected
    assert handle.flush(60)
assert len(observer.events) + handle.dropped.total == 1
print("fine")
"""


def test_a_full_disk_is_counted_and_nothing_else(tmp_path: Path) -> None:
    run = subprocess.run(
        # -B: bytecode would be cut off at the limit, and every later process would read it
        [sys.executable, "-B", "-c", APPLICATION, str(tmp_path / "tags.sqlite")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.stdout == "fine\n", run.stderr[-3000:]
    assert "Traceback" not in run.stderr
