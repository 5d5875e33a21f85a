"""Documents of stores and corpora, tagged in place, beside them, or many at once."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.document_stores import (
    STORE_GROUP,
    CorpusStore,
    DocumentStore,
    open_document_store,
)
from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias.tagging.documents import (
    SidecarStore,
    Tagger,
    TagResult,
    tag_documents,
    tag_store,
)
from rag_sourcebias.tagging.rules import IdTagger

N = 2_500


class Shelf:
    """Documents that are only read here; can be made to end in the middle."""

    name = "shelf"

    def __init__(self, n: int = N, *, place: str = "", collection: str | None = None) -> None:
        self.texts = {f"d{i}@{'human' if i % 2 else 'llm:x'}": f"text {i}" for i in range(n)}
        self.place, self.collection = place, collection
        self.stop_after: int | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        for number, (doc_id, text) in enumerate(self.texts.items()):
            if number == self.stop_after:
                raise KeyboardInterrupt
            yield doc_id, text, {"author": doc_id}

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        return ((doc_id, DocTags()) for doc_id in self.texts)

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        raise AssertionError("a sidecar must not tag the store itself")


def by_parity(source: str) -> Tagger:
    """Tags the even documents."""

    def tagger(doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:
        even = int(text.split()[1]) % 2 == 0
        return DocTags(source=source, style="news", origin="declared") if even else None

    return tagger


def open_shelf(place: str, collection: str | None) -> Shelf:
    return Shelf(3, place=place, collection=collection)


def sources(path: Path) -> dict[str, int]:
    return open_tag_store(path).counts()


@pytest.fixture
def shelf_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that offers the kind "shelf"."""
    folder = tmp_path / "site" / "shelves-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shelves\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{STORE_GROUP}]\nshelf = {__name__}:open_shelf\n")
    monkeypatch.syspath_prepend(folder.parent)


def test_an_installed_package_opens_its_own_kind(shelf_package: None) -> None:
    store = open_document_store("shelf:http://host:80/a", collection="c")
    assert isinstance(store, Shelf)
    assert isinstance(store, DocumentStore)
    assert (store.place, store.collection) == ("http://host:80/a", "c")


@pytest.mark.parametrize("spec", ["db", "chroma:", "corpus: ", ":x", ""])
def test_an_address_without_kind_or_place_is_refused(spec: str, shelf_package: None) -> None:
    with pytest.raises(DataError, match=rf"'{spec}'.*corpus.*shelf"):
        open_document_store(spec)


def write_jsonl(path: Path, *records: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    return path


def test_a_paired_corpus_gives_ids_texts_metadata_and_tags(tmp_path: Path) -> None:
    row = {"_id": "a", "title": "T", "text": "x", "url": "https://e.org", "metadata": {"k": 1}}
    write_jsonl(tmp_path / "corpus" / "human.jsonl", row)
    write_jsonl(tmp_path / "corpus" / "gpt.jsonl", {"_id": "a", "text": "y"})
    store = open_document_store(f"corpus:{tmp_path}")
    assert len(store) == 2
    assert {d: (t, dict(m)) for d, t, m in store.documents()} == {
        "a@human": ("T x", {"url": "https://e.org", "k": 1}),
        "a@llm:gpt": ("y", {}),
    }
    tags = dict(store.tags())
    assert tags["a@llm:gpt"] == DocTags(source="llm:gpt", pair_id="a", origin="declared")


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_plain_corpus_declares_sources_or_nothing(tmp_path: Path, as_folder: bool) -> None:
    file = write_jsonl(
        tmp_path / "corpus.jsonl",
        {"_id": "a", "text": "x", "metadata": {"source": "human", "style": "essay"}},
        {"_id": "b", "text": "y", "metadata": {"source": "https://e.org"}},
        {"_id": "c", "text": "z"},
    )
    store = CorpusStore(tmp_path if as_folder else file)
    assert [metadata for _, _, metadata in store.documents()][1] == {"source": "https://e.org"}
    assert dict(store.tags()) == {
        "a": DocTags(source="human", style="essay", origin="declared"),
        "b": DocTags(),
        "c": DocTags(),
    }


def test_a_corpus_is_only_read_and_says_so(tmp_path: Path) -> None:
    file = write_jsonl(
        tmp_path / "c.jsonl", {"_id": "a#human", "text": "x"}, {"_id": "b", "text": "y"}
    )
    before = file.read_bytes()
    store = CorpusStore(file)
    seen: list[int] = []
    result = tag_store(store, [IdTagger()], dry_run=True, on_progress=seen.append)
    assert (result.n_documents, result.n_written, result.n_untagged) == (2, 1, 1)
    assert result.sources == {"human": 1}
    assert result.dry_run
    assert seen == [2]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("missing", "does not exist; expected a BEIR folder"),
        ("empty", "no corpus"),
        ("bad.jsonl", r"bad\.jsonl:1 .*JSON"),
    ],
)
def test_a_place_that_is_no_corpus_is_named(tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(DataError, match=words):
        len(CorpusStore(tmp_path / place))
    with pytest.raises(DataError, match="no collections"):
        open_document_store(f"corpus:{tmp_path}", collection="c")


@pytest.fixture
def sidecar(tmp_path: Path) -> Path:
    return tmp_path / "tags.sqlite"


def test_ids_that_the_store_lost_are_listed(sidecar: Path) -> None:
    shelf = Shelf(4)
    store = SidecarStore(shelf, sidecar)
    tag_store(store, [IdTagger()])
    assert store.left_over() == []
    del shelf.texts["d2@llm:x"]
    assert store.left_over() == ["d2@llm:x"]
    assert len(list(store.tags())) == len(store) == 3


def test_tags_are_kept_beside_the_store_by_id_and_text(sidecar: Path) -> None:
    store, seen = SidecarStore(Shelf(), sidecar), []
    assert isinstance(store, DocumentStore)
    result = store.tag([by_parity("llm:x")], on_progress=seen.append)
    assert (result.n_documents, result.n_written, result.n_unchanged) == (N, N // 2, N // 2)
    assert (result.sources, result.styles) == ({"llm:x": N // 2}, {"news": N // 2})
    assert result.n_untagged == N // 2
    assert result.backup is None
    assert seen == [1_000, 2_000, N]
    again = open_tag_store(sidecar)
    assert len(again) == N // 2
    assert again.get(["d0@llm:x", "d1@human"])[0].source == "llm:x"
    assert [t.source for t in again.get_by_text(["text 0", "text 1"])] == ["llm:x", None]
    tags = dict(SidecarStore(Shelf(), sidecar).tags())
    assert len(tags) == N
    assert tags["d4@llm:x"] == DocTags(source="llm:x", style="news", origin="declared")
    assert tags["d1@human"] == DocTags()


def test_an_overwrite_that_was_interrupted_loses_no_old_tag(sidecar: Path) -> None:
    shelf, backup = Shelf(), sidecar.with_name("old.sqlite")
    SidecarStore(shelf, sidecar).tag([by_parity("llm:x")])
    shelf.stop_after = 1_500
    with pytest.raises(KeyboardInterrupt):
        SidecarStore(shelf, sidecar).tag([IdTagger()], overwrite=True, backup=backup)
    shelf.stop_after = None
    result = SidecarStore(shelf, sidecar).tag([IdTagger()], overwrite=True, backup=backup)
    assert result.n_unchanged == 1_000
    assert result.n_written == 1_500
    assert sources(backup) == {"llm:x": N // 2}


def test_tags_of_unknown_taggers_are_not_replaced_unasked(sidecar: Path) -> None:
    open_tag_store(sidecar).put([("d0@llm:x", DocTags(source="human"))])
    with pytest.raises(DataError, match="tags of 1 documents by other taggers"):
        SidecarStore(Shelf(3), sidecar).tag([IdTagger()])
    sidecar.with_name(f"{sidecar.name}.taggers.json").write_text("torn {")
    with pytest.raises(DataError, match="by other taggers"):
        SidecarStore(Shelf(3), sidecar).tag([IdTagger()])


# Taggers that are faster with many texts at once


class Lengths:
    """Long texts are an LLM's; short ones it does not know."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:
        return DocTags(source="llm:x", origin="detected") if len(text) > 5 else None

    def tag_many(self, texts: Sequence[str]) -> list[DocTags | None]:
        self.calls.append(len(texts))
        return [self("", text, {}) for text in texts]


def documents(n: int) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    return ((f"d{i}@human" if i % 3 == 0 else f"d{i}", "x" * (i % 10), {}) for i in range(n))


def test_many_texts_give_what_single_ones_give() -> None:
    class Single(Lengths):
        tag_many = None  # type: ignore[assignment]

    many = Lengths()
    found = list(tag_documents(documents(1000), [IdTagger(), many]))
    assert found == list(tag_documents(documents(1000), [IdTagger(), Single()]))
    assert sum(many.calls) == 1000
    assert len(many.calls) < 10


def test_a_stream_is_read_piece_by_piece() -> None:
    read = 0

    def counted() -> Iterator[tuple[str, str, Mapping[str, object]]]:
        nonlocal read
        for row in documents(10_000):
            read += 1
            yield row

    next(tag_documents(counted(), [Lengths()]))
    assert read < 1000


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ZeroDivisionError("no"), "documents 'd0@human' to 'd4': tagger .* raised ZeroDivision"),
        ([None], "returned 1 tags for 5 texts"),
        (["human"] * 5, "document 'd0@human': tagger .* returned 'human' \\(str\\)"),
    ],
)
def test_a_wrong_answer_names_tagger_and_documents(answer: object, message: str) -> None:
    class Wrong(Lengths):
        def tag_many(self, texts: Sequence[str]) -> list[DocTags | None]:
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[return-value]

    with pytest.raises(DataError, match=message):
        list(tag_documents(documents(5), [Wrong()]))
