"""LangChain's callbacks, handed to a recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from rag_sourcebias.instrument import DroppedEvents, Recorder
from rag_sourcebias_integrations.langchain.convert import record_documents
from rag_sourcebias_integrations.langchain.labels import RunLabels
from rag_sourcebias_integrations.langchain.runs import CHAIN, OpenRun, OpenRuns

__all__ = ["RecordingHandler"]


class RecordingHandler(BaseCallbackHandler):
    """Hand every retriever run to a recorder, in constant time and on the thread it runs on.

    Chain runs are announced where they lie inside a retrieval, so that a retrieval inside them is
    known to be nested; all other events are ignored. May be added to any number of calls at once.

    Parameters
    ----------
    recorder : Recorder
    """

    run_inline = True  # a sync handler would run in a thread pool under ainvoke
    raise_error = False
    ignore_agent = True
    ignore_chat_model = True
    ignore_custom_event = True
    ignore_llm = True
    ignore_retry = True

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._labels = RunLabels(recorder)
        self._runs = OpenRuns(recorder.end)
        self._stopped = False

    @property
    def ignore_chain(self) -> bool:
        """Chains matter only inside a retrieval."""
        return not self._runs

    @property
    def dropped(self) -> DroppedEvents:
        """Events that were lost, by reason."""
        return self._recorder.dropped

    def stop(self) -> None:
        """Record nothing any more; runs in flight are closed as they end."""
        self._stopped = True

    def on_retriever_start(
        self,
        serialized: object,  # noqa: ARG002
        query: str,
        *,
        run_id: Any,  # noqa: ANN401 - a UUID
        parent_run_id: Any = None,  # noqa: ANN401
        metadata: Mapping[str, Any] | None = None,
        name: object = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Note that a retriever started."""
        if self._stopped:
            return
        try:
            parent = None if parent_run_id is None else parent_run_id.int
            store = metadata.get("ls_vector_store_provider") if metadata else None
            key = self._runs.begin(run_id, parent, query, name, store)
        except (AttributeError, TypeError) as error:
            self._recorder.dropped.add("start could not be read", error=error)
        else:
            self._recorder.begin(key, parent)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Record the result, if no other retrieval stands around this one."""
        run = self._end(run_id)
        if run is not None and not self._stopped:
            query, name, store, _, _, _ = run
            record_documents(
                self._recorder, documents, query=query, labels=self._labels.of(name, store)
            )

    def on_retriever_error(self, error: BaseException, *, run_id: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that a retriever failed: there is no result to record."""
        self._end(run_id)

    def on_chain_start(
        self,
        serialized: object,  # noqa: ARG002
        inputs: object,  # noqa: ARG002
        *,
        run_id: Any,  # noqa: ANN401
        parent_run_id: Any = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Note a chain that lies inside a retrieval."""
        if parent_run_id is not None and parent_run_id.int in self._runs:
            self._runs[run_id.int] = CHAIN
            self._recorder.begin(run_id.int, parent_run_id.int, is_retrieval=False)

    def on_chain_end(self, outputs: object, *, run_id: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that such a chain ended."""
        self._end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that such a chain failed."""
        self._end(run_id)

    def __copy__(self) -> RecordingHandler:
        return self

    def __deepcopy__(self, memo: object) -> RecordingHandler:  # a copied config is observed too
        return self

    def _end(self, run_id: Any) -> OpenRun | None:  # noqa: ANN401
        """Close a run; return it if its result is to be recorded."""
        key = getattr(run_id, "int", None)
        run = self._runs.end(key)
        return run if run is not None and self._recorder.end(key) else None
