"""Switch observation off for a stretch of code."""

import contextlib
from contextvars import ContextVar, Token
from types import TracebackType

suppressed: ContextVar[bool] = ContextVar("rag_sourcebias_suppressed", default=False)


class suppress:  # noqa: N801 - used as a statement, as contextlib.suppress is
    """Observe no retrieval inside this block.

    The mark follows the context: tasks started inside the block keep it (also after the block
    has ended), and so do threads into which the context is copied (``asyncio.to_thread``,
    LangChain's executor). A plain ``threading.Thread`` starts without it. Other tasks and
    threads are not affected. Blocks nest; one object serves one block.

    Examples
    --------
    >>> with suppress():
    ...     is_suppressed()
    True
    >>> is_suppressed()
    False
    """

    __slots__ = ("_token",)

    _token: Token[bool]

    def __enter__(self) -> None:
        self._token = suppressed.set(True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A generator may be closed in another context than the one it was started in; there the
        # mark was never set, and a ValueError would reach the host.
        with contextlib.suppress(ValueError):
            suppressed.reset(self._token)


def is_suppressed() -> bool:
    """Return whether the current context is inside a :class:`suppress` block."""
    return suppressed.get()
