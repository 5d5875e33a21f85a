"""Messages of functions in the words of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rag_sourcebias.errors import DataError

__all__ = ["as_options"]


@contextmanager
def as_options(words: Mapping[str, str]) -> Iterator[None]:
    """Name options instead of arguments in the message of any data error raised inside.

    Parameters
    ----------
    words : mapping
        What a message says, to what is said here.
    """
    try:
        yield
    except DataError as error:
        told = str(error)
        for argument, option in words.items():
            told = told.replace(argument, option)
        raise type(error)(told) from error
