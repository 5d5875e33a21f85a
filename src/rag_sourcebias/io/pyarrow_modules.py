"""pyarrow, which is loaded only where a Parquet file is read or written."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.errors import MissingExtraError

__all__ = ["pyarrow_modules"]


def pyarrow_modules(feature: str) -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    Parameters
    ----------
    feature : str
        What needs them, for the message.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        if error.name != "pyarrow":
            raise
        raise MissingExtraError(package="pyarrow", extra="parquet", feature=feature) from error
    return pa, pq
