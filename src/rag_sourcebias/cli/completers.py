"""Language models from their names on the command line: ``openai:<name>``, ``local:<name>``."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.cli.checks import choice
from rag_sourcebias.errors import DataError
from rag_sourcebias.llm import OpenAICompleter
from rag_sourcebias.protocols import Completer

__all__ = ["completer_of"]

_APIS = ("chat", "completions")


def completer_of(
    model: str,
    *,
    base_url: str | None,
    api: str,
    timeout: float,
    concurrency: int,
    models: Path | None = None,
    chat: bool = False,
    ask: bool = True,
) -> Completer:
    """Build the completer that a name stands for; nothing is asked and no model is loaded.

    Parameters
    ----------
    model : str
        ``openai:<name>`` for any OpenAI-compatible server, ``local:smollm2``, ``local:<path or
        hub name>``.
    models : Path, optional
        Folder in which the packaged model is converted once.
    chat : bool
        Whether a local model gets the prompt through its chat template.
    ask : bool
        False for a completer that is only looked at: it needs no key.
    """
    kind, _, name = model.partition(":")
    if kind not in ("openai", "local") or not name:
        raise DataError(f"--model {model!r}: write openai:<name>, local:smollm2 or local:<path>")
    checked = choice("api", api, _APIS)
    if kind == "openai":
        return OpenAICompleter(
            name,
            base_url=base_url,
            api_key=None if ask else "not asked",
            api=checked,
            timeout=timeout,
            max_concurrency=concurrency,
        )
    from rag_sourcebias.neural.local_llm import LocalCompleter

    return LocalCompleter(name, cache=models, chat=chat)
