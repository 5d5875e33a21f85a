"""Taggers that are faster with many texts at once."""

from collections.abc import Iterator, Mapping, Sequence

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.tagging.documents import tag_documents
from rag_sourcebias.tagging.rules import IdTagger


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
