"""Import LlamaIndex before any module of this package does, or say how to install it."""

from rag_sourcebias.core.errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    # "llama_index" alone may be there: other distributions install packages below it.
    if error.name not in ("llama_index", "llama_index.core"):
        raise
    raise MissingExtraError(
        package="llama-index-core", extra="llama-index", feature="LlamaIndex"
    ) from error
