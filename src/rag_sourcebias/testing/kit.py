"""What an adapter's tests say about its framework."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.core.tags import from_metadata, to_metadata
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.recorder import Instrumentation, instrument

# What the parts of the contract share: hooks may be implemented, tests may not be replaced.


class ContractKit:
    """Base of the contract classes.

    A subclass that replaces a test of the kit, or declares something unsupported without a
    reason, is refused when it is defined: an adapter that passes has passed all of it.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    unsupported: ClassVar[Mapping[str, str]] = {}
    """Capabilities the framework does not have, each with the reason; their tests are skipped."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith("rag_sourcebias.testing."):
            return
        inherited = {
            name
            for base in cls.__mro__[1:]
            if base.__module__.startswith("rag_sourcebias.testing.")
            for name in vars(base)
            if name.startswith("test_")
        }
        replaced = sorted(inherited & vars(cls).keys())
        if replaced:
            raise TypeError(f"{cls.__name__} replaces {', '.join(replaced)} of the contract")
        for name, reason in cls.unsupported.items():
            if name not in cls.capabilities:
                raise TypeError(
                    f"{cls.__name__}: {name!r} is no capability; there are "
                    f"{', '.join(sorted(cls.capabilities))}"
                )
            if not reason.strip():
                raise TypeError(f"{cls.__name__}: say why {name!r} is not supported")

    def need(self, capability: str) -> None:
        """Skip the running test where the framework lacks something, with the reason."""
        if capability in self.unsupported:
            pytest.skip(f"{capability}: {self.unsupported[capability]}")


# What an object holds, for checks of privacy and of equality.


def strings_in(value: object) -> list[str]:
    """Return every string inside nested containers, dataclasses and objects."""
    found: list[str] = []
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str | bytes):
            found.append(item if isinstance(item, str) else item.decode("utf-8", "replace"))
            continue
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
        elif is_dataclass(item):
            waiting += [getattr(item, field.name) for field in fields(item)]
        else:
            waiting += vars(item).values() if hasattr(item, "__dict__") else ()
    return found


# The documents on which the contract is checked.


QUERY = "which river floods the meadow in spring"
"""The query that the contract tests ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractDocument:
    """One document.

    Parameters
    ----------
    doc_id, text : str
    metadata : mapping of str to (str or int or float or bool)
        What the application keeps about it; holds no tags.
    tags : DocTags
        What is known of it; all unknown for some.
    """

    doc_id: str
    text: str
    metadata: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    tags: DocTags = field(default_factory=DocTags)

    def tagged_metadata(self) -> dict[str, str | int | float | bool]:
        """Return the metadata together with the tags, as a tagged store holds them."""
        return {**self.metadata, **to_metadata(self.tags)}


_CORPUS = (
    "The river floods the meadow in spring and leaves fine silt.",
    "In spring the meadow by the river stands under water.",
    "Snow melts in March; the river rises and the meadow floods.",
    "Überschwemmte Wiesen am Fluss: das Frühjahrshochwasser.",
    "A meadow needs two cuts a year, and the river needs room.",
    "The committee met on Tuesday and adjourned without a vote.",
    "洪水每年春天淹没河边的草地。",
    "Silt from the river feeds the meadow's orchids. 🌼",
    "Rivers carry sediment; meadows keep it.",
    "Trains were late because of the flood in spring.",
)
_SOURCES = ("human", "llm:alpha", "human", None, "llm:beta", "human", "llm:alpha", None, "human")

DOCUMENTS = tuple(
    ContractDocument(
        doc_id=f"doc-{number}",
        text=text,
        metadata={
            "source": f"https://example.org/{number}",
            "year": 2000 + number,
            "public": number % 2 == 0,
        },
        tags=DocTags(
            source=source,
            style="plain" if source else None,
            pair_id=f"pair-{number}" if source else None,
            origin="declared" if source else None,
            confidence=0.75 if source == "llm:beta" else None,
        ),
    )
    for number, (text, source) in enumerate(zip(_CORPUS, (*_SOURCES, "llm:beta"), strict=True))
)
"""Ten documents: four human, four by LLMs, two of unknown source."""

_TAGS_OF = {document.text: document.tags for document in DOCUMENTS}


def tag_document(doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG001
    """Tag one of the documents; a tagger."""
    tags = _TAGS_OF.get(text)
    return None if tags is None or tags == from_metadata({}) else tags


# What an adapter's tests say about its framework.


PATIENCE = 30.0  # seconds to wait for a queue; only a broken adapter ever waits that long


class ContractFailure(Exception):  # noqa: N818 - the application's own, not an error of ours
    """What a failing retriever of the kit raises."""


class RetrievalHooks(ContractKit):
    """The hooks, and what a framework may not have."""

    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"async", "batch", "nested", "empty", "metadata"}
    )

    @abstractmethod
    def build(self, documents: Sequence[ContractDocument]) -> Any:  # noqa: ANN401
        """Return a native retriever over the documents, metadata and tags
        (``document.tagged_metadata()``) included; a search returns all of them.
        """  # noqa: D205

    @abstractmethod
    def build_failing(self) -> Any:  # noqa: ANN401
        """Return a native retriever whose search raises :class:`ContractFailure`."""

    @abstractmethod
    def search(self, target: Any, query: str) -> Any:  # noqa: ANN401
        """Run one query as an application does."""

    @abstractmethod
    def doc_ids(self, result: Any) -> list[str]:  # noqa: ANN401
        """Return the document ids in a result, best first."""

    @abstractmethod
    def content(self, result: Any) -> Any:  # noqa: ANN401
        """Return everything in a result, as something two of which can be compared."""

    def build_nested(self, retriever: Any) -> Any:  # noqa: ANN401
        """Return a composite that asks ``retriever`` twice for each query."""
        pytest.fail(f"implement build_nested, or name it in unsupported: {retriever!r}")

    async def asearch(self, target: Any, query: str) -> Any:  # noqa: ANN401
        """Run one query asynchronously."""
        pytest.fail(f"implement asearch, or name it in unsupported: {target!r}, {query!r}")

    def search_batch(self, target: Any, queries: Sequence[str]) -> Sequence[Any]:  # noqa: ANN401
        """Run several queries by the framework's own batch method."""
        pytest.fail(f"implement search_batch, or name it in unsupported: {target!r}, {queries!r}")

    def attach(
        self,
        target: Any,  # noqa: ANN401
        observer: Observer[RetrievalEvent],
        **options: Any,  # noqa: ANN401
    ) -> Instrumentation:
        """Instrument; the default is what users call."""
        return instrument(target, observer, **options)
