"""Language models of frameworks as completers."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.adapters.installed import installed, roots, type_name
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Completer

__all__ = ["as_completer"]


def as_completer(model: object, **options: Any) -> Completer:  # noqa: ANN401
    """Return a completer for a language model of a framework; a completer as it is.

    Parameters
    ----------
    model : object
        A LangChain chat model or LLM, a LlamaIndex LLM, or a
        :class:`~rag_sourcebias.protocols.Completer`.
    **options
        Of the framework's completer: ``name``, ``max_concurrency``, ``parameters``.

    Raises
    ------
    DataError
        If no adapter knows such an object; the message says what is accepted.
    MissingExtraError, UnsupportedVersionError
        If the framework is missing or too old.

    Examples
    --------
    ::

        build_paired_corpus("my-corpus", as_completer(ChatOpenAI(model="gpt-4o-mini")), "paired")
    """
    if isinstance(model, Completer):
        if options:
            raise DataError(f"{', '.join(options)}: {type_name(model)} is a completer already")
        return model
    found = installed()
    by_name = {entry.name: entry for entry in found}
    for name in (root for root in roots(model) if root in by_name):
        # An adapter of somebody else's may know retrievers only.
        make = getattr(by_name[name].load(), "completer", None)
        made: Completer | None = make(model, options) if make is not None else None
        if made is not None:
            return made
    adapters = (entry.load() for entry in found)
    known = dict.fromkeys(getattr(adapter, "completes", "") for adapter in adapters)
    accepted = ["an OpenAICompleter, a LocalCompleter or another completer", *filter(None, known)]
    raise DataError(
        f"an object of type {type_name(model)} cannot complete prompts; expected "
        f"{'; '.join(accepted)}"
    )
