"""The span handler for LlamaIndex's dispatcher, needed where one object is observed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr

from rag_sourcebias_integrations.llama_index.inside import SpansInside

__all__ = ["SourceBiasSpanHandler"]


class SourceBiasSpanHandler(BaseSpanHandler[BaseSpan]):
    """Follow the spans of one object and all spans inside them; keeps their ids only.

    Parameters
    ----------
    target : BaseRetriever or BaseQueryEngine or BaseIndex
        For an index its retrievers count, whoever made them.
    """

    _given: SpansInside = PrivateAttr()

    def __init__(self, target: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._given = SpansInside(target)

    @cached_property
    def inside(self) -> SpansInside:
        """Ids of the spans inside the object."""
        return self._given  # a private attribute of pydantic costs over a microsecond each time

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "SourceBiasSpanHandler"

    def span_enter(
        self,
        id_: str,
        bound_args: Any,  # noqa: ANN401, ARG002 - they hold the query
        instance: Any | None = None,  # noqa: ANN401
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> None:
        """Note a span that lies inside."""
        self.inside.enter(id_, instance, parent_id)

    def span_exit(self, id_: str, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that a span ended."""
        self.inside.leave(id_)

    def span_drop(self, id_: str, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Note that a span failed."""
        self.inside.leave(id_)

    # The base class would make and keep span objects by these; the methods above do not.
    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Make no span object."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Keep nothing."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Keep nothing."""
