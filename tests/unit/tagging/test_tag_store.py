"""One suite for all tag stores, then what only a file can get wrong."""

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import (
    METADATA_KEYS,
    TagStore,
    content_hash,
    from_metadata,
    to_metadata,
)
from rag_sourcebias.observe.tags import (
    SqliteTagStore,
    open_tag_store,
)

HUMAN = DocTags(source="human", origin="declared")
LLM = DocTags(source="llm:x", style="news", pair_id="p1", origin="detected", confidence=0.75)
UNKNOWN = DocTags()
SURROGATE = "lone \ud800 surrogate"


@pytest.fixture(params=[None, "tags.sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TagStore:
    return open_tag_store(None if request.param is None else tmp_path / "new" / request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tags.sqlite"


# every store


def test_tags_come_back_in_the_order_asked_for(store: TagStore) -> None:
    assert isinstance(store, TagStore)
    store.put([("a", HUMAN), ("b", LLM)])
    assert store.get(["b", "nowhere", "a", "b"]) == [LLM, UNKNOWN, HUMAN, LLM]
    assert store.get([]) == []
    assert len(store) == 2


def test_an_empty_store_knows_nothing(store: TagStore) -> None:
    assert store.get(["a"]) == [UNKNOWN]
    assert store.get_by_text(["a"]) == [UNKNOWN]
    assert (len(store), store.counts(), store.remove(["a"])) == (0, {}, 0)
    assert len(store.table()) == 0
    store.put([])
    assert len(store) == 0


def test_unknown_is_stored_as_unknown_never_as_human(store: TagStore) -> None:
    store.put([("h", HUMAN), ("u", UNKNOWN), ("s", DocTags(style="news")), ("l", LLM)])
    assert store.get(["u", "s"]) == [UNKNOWN, DocTags(style="news")]
    assert store.counts() == {"human": 1, "llm:x": 1, "": 2}
    assert list(store.counts()) == ["human", "llm:x", ""]
    assert len(store) == 4


def test_the_last_row_of_an_id_wins(store: TagStore) -> None:
    store.put([("a", HUMAN), ("b", HUMAN), ("a", LLM)])
    assert store.get(["a"]) == [LLM]
    store.put([("b", UNKNOWN)])
    assert store.get(["b"]) == [UNKNOWN]
    assert store.counts() == {"llm:x": 1, "": 1}


def test_table_holds_everything_in_the_order_of_the_last_put(store: TagStore) -> None:
    store.put([("a", HUMAN), ("b", LLM), ("c", UNKNOWN)])
    store.put([("a", HUMAN)])
    table = store.table()
    assert table.doc_ids == ("b", "c", "a")
    assert [table.get(i) for i in table.doc_ids] == [LLM, UNKNOWN, HUMAN]
    assert table.counts() == store.counts()


def test_look_up_by_content(store: TagStore) -> None:
    store.put([("a", HUMAN), ("b", LLM)], texts={"a": "one", "b": "two", "not a row": "three"})
    assert store.get_by_text(["two", "one", "three", "One", "one "]) == [LLM, HUMAN] + [UNKNOWN] * 3


def test_a_new_text_replaces_the_old_one(store: TagStore) -> None:
    store.put([("a", HUMAN)], texts={"a": "old"})
    store.put([("a", LLM)], texts={"a": "new"})
    assert store.get_by_text(["old", "new"]) == [UNKNOWN, LLM]


def test_removal_counts_what_was_there_and_forgets_the_text(store: TagStore) -> None:
    store.put([("a", HUMAN), ("b", LLM)], texts={"a": "text of a"})
    assert store.remove(["a", "nowhere", "a"]) == 1
    assert store.get(["a", "b"]) == [UNKNOWN, LLM]
    assert store.get_by_text(["text of a"]) == [UNKNOWN]
    store.put([("a", LLM)])
    assert store.get_by_text(["text of a"]) == [UNKNOWN]


@pytest.mark.parametrize(
    "name", ["é", "e\u0301", "文書", "😀", SURROGATE, "a\x00b", "a\nb\t", '"{']
)
def test_any_string_is_an_id_a_text_and_a_tag(store: TagStore, name: str) -> None:
    tags = DocTags(source=f"llm:{name}", style=name, pair_id=name)
    store.put([(name, tags), ("other", HUMAN)], texts={name: name})
    assert store.get([name, "other"]) == [tags, HUMAN]
    assert store.get_by_text([name]) == [tags]
    assert store.counts() == {"human": 1, f"llm:{name}": 1}
    assert store.table().get(name) == tags
    assert store.remove([name]) == 1


def test_more_ids_than_one_query_of_a_database_takes(store: TagStore) -> None:
    ids = [f"d{i}" for i in range(2_345)]
    store.put([(i, LLM if n % 3 else HUMAN) for n, i in enumerate(ids)], {i: f"t {i}" for i in ids})
    assert [t.source for t in store.get(ids)] == [
        "llm:x" if n % 3 else "human" for n in range(2345)
    ]
    assert store.get_by_text([f"t {i}" for i in reversed(ids)]) == store.get(ids[::-1])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("", HUMAN), "document id '' must be a non-empty string"),
        ((7, HUMAN), "document id 7 must be a non-empty string"),
        (("x", "human"), "document 'x': expected DocTags, found 'human'"),
        (("x", DocTags(origin="guess")), "document 'x': origin 'guess' is not one of declared,"),  # type: ignore[arg-type]
        (("x", DocTags(style=3)), "document 'x': style 3 is not a tag"),  # type: ignore[arg-type]
    ],
)
def test_one_bad_row_and_nothing_is_stored(store: TagStore, row: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        store.put([("good", HUMAN), row])  # type: ignore[list-item]
    assert len(store) == 0


def test_wrong_arguments_are_named(store: TagStore) -> None:
    with pytest.raises(DataError, match="expected a list of document ids, found one string 'abc'"):
        store.get("abc")
    with pytest.raises(DataError, match="expected a list of texts, found one string"):
        store.get_by_text("abc")
    with pytest.raises(DataError, match="document id None is not a string"):
        store.remove(["a", None])  # type: ignore[list-item]
    with pytest.raises(DataError, match="document 'a': its text is 5, not a string"):
        store.put([("a", HUMAN)], texts={"a": 5})  # type: ignore[dict-item]


def test_threads_share_a_store(store: TagStore) -> None:
    def work(name: str) -> None:
        for i in range(20):
            store.put([(f"{name}{i}", HUMAN)], texts={f"{name}{i}": "shared"})
            store.get_by_text(["shared"])
            store.counts()

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(store), store.counts()) == (80, {"human": 80})


# files


def test_no_text_is_stored(path: Path) -> None:
    open_tag_store(path).put([("a", HUMAN)], texts={"a": "confidential words"})
    for file in path.parent.iterdir():
        assert b"confidential" not in file.read_bytes()


def test_reading_creates_no_file(path: Path) -> None:
    open_tag_store(path).get(["a"])
    assert not path.exists()


def test_a_store_whose_folder_cannot_be_made(path: Path) -> None:
    path.write_text("a file, not a folder")
    inner = open_tag_store(path / path.name)
    with pytest.raises(DataError, match=r"cannot be (created|read|used)|cannot be added"):
        inner.put([("a", HUMAN)])


FULL_DISK = """
import resource, sys
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe import open_tag_store
from rag_sourcebias.core.data import DocTags
store = open_tag_store(sys.argv[1])
store.put([("kept", DocTags(source="human"))])
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
try:
    store.put([(f"lost{i}", DocTags(source="human")) for i in range(5_000)])
except DataError as error:
    print(len(store), error)
"""


def test_a_full_disk_loses_nothing_that_was_stored(path: Path) -> None:
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("1 ")
    assert path.name in done.stdout
    again = open_tag_store(path)
    again.put([("more", LLM)])
    assert open_tag_store(path).table().doc_ids == ("kept", "more")


KILLED = """
import sys
from rag_sourcebias.observe import open_tag_store
from rag_sourcebias.core.data import DocTags
store = open_tag_store(sys.argv[1])
n = 0
while True:
    store.put([(f"{n}-{i}", DocTags(source="human")) for i in range(50)])
    n += 1
    print(n, flush=True)
"""


def test_a_killed_writer_leaves_a_store_that_opens(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if line == "20\n":
                writer.kill()
                break
        writer.stdout.read()
    store = open_tag_store(path)
    assert len(store) >= 1000
    assert store.get(["0-0", "19-49"]) == [DocTags(source="human")] * 2
    store.put([("after", LLM)])
    assert open_tag_store(path).get(["after"]) == [LLM]


# the database

WRITER = """
import sys
from rag_sourcebias.observe import SqliteTagStore
from rag_sourcebias.core.data import DocTags
store = SqliteTagStore(sys.argv[1])
for n in range(40):
    rows = [(f"{sys.argv[2]}-{n}-{i}", DocTags(source=sys.argv[2])) for i in range(25)]
    store.put([*rows, ("shared", DocTags(source=sys.argv[2]))], {"shared": "shared text"})
"""


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    assert [(w.communicate(timeout=120)[1], w.returncode) for w in writers] == [(b"", 0)] * 2
    store = SqliteTagStore(path)
    winner = store.get(["shared"])[0]
    assert winner.source in ("one", "two")
    assert store.get_by_text(["shared text"]) == [winner]
    assert sum(store.counts().values()) == len(store) == 2_001
    assert store.get(["one-39-24", "two-0-0"]) == [DocTags(source="one"), DocTags(source="two")]


def test_a_foreign_file_is_refused_at_once_and_not_called_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_text("this is not a database, only a text that is long enough to be read\n" * 20)
    with pytest.raises(DataError, match=r"tag store .*t\.sqlite is damaged or not a tag store"):
        SqliteTagStore(path)
    assert path.read_text().startswith("this is not")


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chroma.sqlite3"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE embeddings (id)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"database of another program \(it holds embeddings\)"):
        SqliteTagStore(path)
    assert path.read_bytes() == before


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    store = SqliteTagStore(path)
    store.put([("a", HUMAN), ("b", HUMAN)])
    database = sqlite3.connect(path)
    database.execute("UPDATE rag_sourcebias_tags SET confidence = 'much' WHERE doc_id = 'b'")
    database.commit()
    database.close()
    assert store.get(["a"]) == [HUMAN]
    with pytest.raises(DataError, match=r"row 'b': confidence 'much' is not a number"):
        store.table()


# keys and names


@pytest.mark.parametrize("tags", [HUMAN, LLM, UNKNOWN, DocTags(style="news")])
def test_metadata_restores_the_tags(tags: DocTags) -> None:
    metadata = to_metadata(tags)
    assert set(metadata) <= set(METADATA_KEYS)
    assert json.loads(json.dumps(metadata)) == metadata
    assert from_metadata({"source": "https://example.org", "page": 3, **metadata}) == tags


def test_unknown_writes_no_key_and_no_key_reads_as_unknown() -> None:
    assert to_metadata(UNKNOWN) == {}
    assert from_metadata({"source": "human"}) == UNKNOWN
    empty = dict.fromkeys(METADATA_KEYS)
    assert from_metadata(empty) == from_metadata(dict.fromkeys(METADATA_KEYS, "")) == UNKNOWN


@pytest.mark.parametrize("name", ["source", "style", "pair_id", "origin", "confidence"])
@pytest.mark.parametrize("value", [True, ["human"], "  ", 3, float("nan"), -0.1])
def test_a_bad_value_is_named_with_its_key(name: str, value: object) -> None:
    key = next(k for k in METADATA_KEYS if k.endswith(name))
    with pytest.raises(DataError) as caught:
        from_metadata({key: value})
    assert key in str(caught.value)
    assert repr(value) in str(caught.value)


def test_content_hash_has_128_bits_and_tells_surrogates_apart() -> None:
    texts = ["", "a", SURROGATE, "\ud83d\ude00", "😀"]
    hashes = [content_hash(text) for text in texts]
    assert {len(h) for h in hashes} == {16}
    assert len(set(hashes)) == len(texts)


@pytest.mark.parametrize("name", ["t.SQLITE", "t.sqlite", "t.sqlite3", "t.db"])
def test_the_ending_chooses_the_store(tmp_path: Path, name: str) -> None:
    for path in (tmp_path / name, str(tmp_path / name)):
        assert type(open_tag_store(path)) is SqliteTagStore


@pytest.mark.parametrize("spec", ["tags.csv", "tags", "", "t.jsonl", 5, Path("x.parquet")])
def test_other_endings_are_refused(spec: object) -> None:
    with pytest.raises(DataError, match=r"is not recognised; name a file that ends in .sqlite"):
        open_tag_store(spec)  # type: ignore[arg-type]
