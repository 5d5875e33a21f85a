"""The span handler for LlamaIndex's dispatcher, needed where one object is observed."""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

from rag_sourcebias_integrations.llama_index.inside import SpansInside

__all__ = ["SourceBiasSpanHandler"]


class SourceBiasSpanHandler(BaseSpanHandler[BaseSpan]):
    """Follow the spans of one object and all spans inside them; keeps their ids only.

    Parameters
    ----------
    target : BaseRetriever or BaseQueryEngine or BaseIndex
        For an index its retrievers count, whoever made them.
    """

    def __init__(self, target: Any) -> None:  # noqa: ANN401
        super().__init__()
        inside = SpansInside(target)
        # In front of the methods: attributes of pydantic cost more than what is done with a span.
        self.__dict__ |= {
            "inside": inside,
            "span_enter": inside.enter,
            "span_exit": inside.leave,
            "span_drop": inside.leave,
        }

    @property
    def inside(self) -> SpansInside:
        """Ids of the spans inside the object."""
        found: SpansInside = self.__dict__["inside"]
        return found

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "SourceBiasSpanHandler"

    # The base class would make and keep span objects by these; the methods above do not.
    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Make no span object."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Keep nothing."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Keep nothing."""
