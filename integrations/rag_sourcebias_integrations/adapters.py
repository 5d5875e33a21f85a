"""The adapters as entry points: light to import, each loads its framework when it is used."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, cast

from rag_sourcebias.core.errors import MissingExtraError, UnsupportedVersionError
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.observe.recorder import Attachment, Recorder
from rag_sourcebias.retrieval.application import Hit
from rag_sourcebias.retrieval.rerank import Held
from rag_sourcebias_integrations._require import outside


@dataclass(kw_only=True, eq=False)
class FrameworkAdapter:
    """An adapter whose code is imported on first use.

    Parameters
    ----------
    accepts : str
        What can be given, for error messages.
    module : str
        Module below this package with ``attach(obj, recorder)``; that of functions also takes
        ``hits``, ``metadata`` and ``score``.
    package, extra : str, optional
        Distribution of the framework, and the extra that installs it.
    at_least, below : str, optional
        Lowest supported version of the distribution, and the first one above what was tested.
    completes : str
        Models that it can make a completer of, for error messages; empty if none.
    completer_class : str
        Where, as ``module:name`` below this package.
    searches : str
        What can be asked a query, for error messages; empty if nothing.
    asking : str
        Module below this package with ``search(obj, depth)``, ``describe(found)`` and, where the
        framework has stores, ``held(obj)``.
    """

    accepts: str
    module: str
    package: str | None = None
    extra: str = ""
    at_least: str = "0"
    below: str = ""
    completes: str = ""
    completer_class: str = ""
    searches: str = ""
    asking: str = ""

    def attach(
        self, obj: object, recorder: Recorder, **readers: Callable[[Any], Any]
    ) -> Attachment | None:
        """Instrument an object; None when it is not one of the framework's that can be.

        A framework outside the tested versions is observed all the same, where what is observed
        is still there; that it is outside, or cannot be observed, is said once, counted, and
        named in the coverage.

        Raises
        ------
        MissingExtraError
            If the framework is not installed.
        """
        warning = self._outside()
        if warning:
            recorder.note(warning)
        try:
            attach = import_module(f"rag_sourcebias_integrations.{self.module}").attach
            return cast("Attachment | None", attach(obj, recorder, **readers))
        except (ImportError, AttributeError) as error:
            if self.package is None or isinstance(error, MissingExtraError):
                raise
            recorder.note(f"{self.package} {version(self.package)} cannot be observed: {error}")
            recorder.dropped.add("framework cannot be observed", error=error)
            return Attachment(obj, lambda: None)

    def completer(self, obj: object, options: Mapping[str, Any]) -> Completer | None:
        """Make a completer of a model; None where the framework has no models.

        Raises
        ------
        DataError
            If the object is none of the framework's models, or an option is out of range.
        MissingExtraError, UnsupportedVersionError
            If the framework is not installed or too old.
        """
        if not self.completer_class:
            return None
        module, _, name = self.completer_class.partition(":")
        return cast("Completer", getattr(self._loaded(module), name)(obj, **options))

    def search(
        self, obj: object, depth: int | None = None
    ) -> Callable[[str], Iterable[Any]] | None:
        """Return what takes a query to documents; None for what cannot be asked.

        Stores and indexes return ``depth`` documents, retrievers what they are set to.
        """
        return self._loaded(self.asking).search(obj, depth) if self.asking else None

    def describe(self, found: object) -> Hit:
        """Read the id, the text, the metadata and the score of a document that came back."""
        return cast("Hit", self._loaded(self.asking).describe(found))

    def held(self, obj: object) -> Held | None:
        """Return id, text and metadata of all that a store holds; None where it cannot list it."""
        found = getattr(self._loaded(self.asking), "held", None)
        return None if found is None else found(obj)

    def _loaded(self, module: str) -> ModuleType:
        if "too old" in (warning := self._outside()):
            raise UnsupportedVersionError(warning)
        return import_module(f"rag_sourcebias_integrations.{module}")

    def _outside(self) -> str:
        if self.package is None:
            return ""
        return outside(self.package, extra=self.extra, at_least=self.at_least, below=self.below)


LANGCHAIN = FrameworkAdapter(
    accepts='a LangChain retriever or vector store, or "langchain" for all retrievers',
    module="langchain.observe",
    package="langchain-core",
    extra="langchain",
    at_least="1.0",
    below="2",
    completes="a LangChain chat model or LLM",
    completer_class="langchain.completer:LangChainCompleter",
    searches="a LangChain retriever, chain, tool or vector store",
    asking="langchain.asking",
)
LLAMA_INDEX = FrameworkAdapter(
    accepts='a LlamaIndex retriever, engine or index, or "llama-index" for all retrievers',
    module="llama_index.observe",
    package="llama-index-core",
    extra="llama-index",
    at_least="0.13",
    below="0.15",
    completes="a LlamaIndex LLM",
    completer_class="llama_index.completer:LlamaIndexCompleter",
    searches="a LlamaIndex retriever, query engine, index or vector store",
    asking="llama_index.asking",
)
CHROMA = FrameworkAdapter(
    accepts='a Chroma collection or client, or "chroma" for all collections',
    module="chroma.observe",
    package="chromadb",
    extra="chroma",
    at_least="1.0.20",
    below="2",
    searches="a Chroma collection",
    asking="chroma.asking",
)
PYTHON = FrameworkAdapter(
    accepts="a function from a query to documents, best first",
    module="python.attach",
    searches="a function from a query to document ids, best first",
    asking="python.asking",
)
