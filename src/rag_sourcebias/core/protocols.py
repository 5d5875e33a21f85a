"""The seams: what other code must offer to be plugged in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import (
    Completion,
    JudgeItem,
    Judgments,
    LabelScores,
    LogPerplexities,
)
from rag_sourcebias.core.data import Corpus, DocTags, Query, Run, Shard

EventT_contra = TypeVar("EventT_contra", contravariant=True)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Model(Protocol):
    """What every model says of itself: its name, its identity and its settings."""

    name: str

    @property
    def fingerprint(self) -> str:
        """Identity of the model, the prompt and every setting that changes what it returns."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state (dtype, maximum length, …); never a key or a password."""


@runtime_checkable
class Encoder(Model, Protocol):
    """Texts to vectors, numpy in and out.

    Both methods keep the order of their input and return float32 arrays of shape
    ``(len(texts), dimension)``. ``fingerprint`` changes whenever the vectors would.
    """

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the query side."""

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the document side."""


@runtime_checkable
class Reranker(Model, Protocol):
    """Scores of (query, text) pairs; higher is better."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Score pairs, in the given order; shape ``(len(pairs),)``."""


@runtime_checkable
class Rescorer(Protocol):
    """Gives what one query retrieved new scores, knowing where the documents come from.

    Called from any thread, and from several at once.
    """

    def __call__(
        self,
        query: str,
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],
        tags: Sequence[DocTags],
        scores: Sequence[float] | None,
    ) -> Sequence[float] | None:
        """Return one finite score for each document, higher being better.

        None leaves everything as it is. ``scores`` are the retriever's, None where it gave none.
        """


@runtime_checkable
class Retriever(Protocol):
    """A retriever over one indexed corpus."""

    name: str

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query, in the order of ``queries``."""


@runtime_checkable
class ApproximateRetriever(Retriever, Protocol):
    """A retriever whose index may miss documents that exact search would return."""

    def exact(self) -> Retriever:
        """Return the same scoring with exact search."""


@runtime_checkable
class RetrieverSpec(Protocol):
    """A recipe that builds a retriever over any corpus, so that an audit can also index the
    corpus of one source alone.
    """  # noqa: D205

    name: str

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus."""


@runtime_checkable
class Completer(Model, Protocol):
    """A language model that continues prompts.

    Methods are called from up to ``max_concurrency`` threads at once. They raise
    ``rag_sourcebias.core.completions.CompletionError`` for a request that failed and make
    one attempt only: retries, caching and counting are done by
    :class:`rag_sourcebias.llm.ask.Asker`.
    """

    max_concurrency: int

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        """Write an answer to one prompt."""

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Return the log-probability of each label as the continuation of one prompt."""


@runtime_checkable
class Judge(Protocol):
    """Grades items; every item comes back, with a distribution or with the reason it has none."""

    name: str

    @property
    def n_grades(self) -> int:
        """Number of grades, the lowest being 0."""

    def judge(
        self, items: Iterable[JudgeItem], *, on_progress: Callable[[int], None] | None = None
    ) -> Judgments:
        """Judge items, in the given order; ``on_progress`` is told how many are done."""


@runtime_checkable
class TextPerplexity(Model, Protocol):
    """How surprising texts are to a language model."""

    @property
    def kind(self) -> Literal["causal", "masked"]:
        """Whether a token is predicted from those before it, or from all others."""

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> LogPerplexities:
        """Return mean −log P per token of each text, in nats."""


@runtime_checkable
class ConditionalPerplexity(TextPerplexity, Protocol):
    """A causal language model, which can also read one text after another."""

    def conditional(
        self,
        prefixes: Sequence[str],
        texts: Sequence[str],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> LogPerplexities:
        """Return mean −log P per token of each text after its prefix, over the same tokens."""


@runtime_checkable
class Observer(Protocol[EventT_contra]):
    """Told about events of one kind: ``Observer[RetrievalEvent]`` sees retrievals.

    Called from any thread, and from several at once unless an
    :class:`~rag_sourcebias.observe.recorder.EventQueue` stands in front.
    """

    def observe(self, event: EventT_contra) -> None:
        """Take one event."""


@runtime_checkable
class ShardedCorpus(Protocol):
    """A corpus that is read a part at a time, by any process that can read its files.

    Objects can be pickled, and hold neither texts nor document ids. Reading the same shard twice
    gives the same documents; shards follow one another without gaps, from row 0.
    """

    @property
    def name(self) -> str:
        """Name of the corpus."""

    @property
    def fingerprint(self) -> str:
        """Identity of the files and of every setting that changes what is read."""

    @property
    def shards(self) -> Sequence[Shard]:
        """All shards, in order."""

    def read(self, shard: Shard) -> Corpus:
        """Read the documents of a shard, in row order, with their tags."""

    def judged_as(self, doc_id: str) -> str:
        """Return the id by which judgments know a document (``_id`` in a BEIR folder)."""


@runtime_checkable
class Engine(Protocol):
    """Where work on many items is done: in this process, or on many machines."""

    name: str

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""

    def map(
        self,
        prepare: Callable[[], Callable[[ItemT], ResultT]],
        items: Sequence[ItemT],
        *,
        on_done: Callable[[int, int], None] | None = None,
    ) -> list[ResultT]:
        """Apply a function to every item and return the results in the order of the items.

        Parameters
        ----------
        prepare : callable
            Called once per worker (a model is loaded here), returns the function; not called where
            there are no items. It can be
            pickled, and so can the items and results; results are small: what is large is
            written to files that all workers share.
        items : sequence
            Each is worked on at least once: again when its worker was lost.
        on_done : callable, optional
            Told ``(done, total)`` after each item.

        Raises
        ------
        SourceBiasError
            What the function raised of that kind, as it was.
        """

    def close(self) -> None:
        """End what the engine started; it may be used again."""
