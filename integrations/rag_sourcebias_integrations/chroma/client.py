"""Open a Chroma client: embedded, on disk, or a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.addresses import address_of
from rag_sourcebias_integrations._require import require

__all__ = ["open_client", "shown"]


def open_client(place: str | Path | None) -> Any:  # noqa: ANN401 - a chromadb client
    """Open a client.

    Parameters
    ----------
    place : str, Path or None
        None keeps everything in memory, a path on disk, an ``http(s)://host:port`` URL names a
        server (``chroma run``); ``http(s)://user:password@host:port`` where it asks for them.

    Raises
    ------
    DataError
        If the folder cannot be made, the URL is not one, or the server cannot be reached.
    """
    chromadb = require("chromadb", package="chromadb", extra="chroma", feature="Chroma")
    # With Chroma's own settings, as the application opens the same place: within a process it
    # refuses one place under two different settings.
    if place is None:
        return chromadb.EphemeralClient()
    if not str(place).startswith(("http://", "https://")):
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"Chroma folder {str(place)!r} cannot be used ({error.strerror}); give a folder "
                "that exists or can be made"
            ) from error
        # chromadb shares databases within a process by the text of the path: a relative one would
        # open the old folder's database after a change of the working folder.
        return chromadb.PersistentClient(path=str(Path(place).resolve()))
    address = address_of(str(place), "the address of a Chroma server")
    url = urlsplit(address.url)
    port = url.port or (443 if url.scheme == "https" else 8000)
    headers = {"Authorization": address.authorization} if address.authorization else None
    try:
        client = chromadb.HttpClient(
            host=url.hostname or "localhost",
            port=port,
            ssl=url.scheme == "https",
            headers=headers,
        )
        client.heartbeat()
    except (ValueError, ConnectionError, chromadb.errors.ChromaError) as error:
        # Chroma wraps connection failures in ValueError.
        raise DataError(
            f"Chroma server {address.url!r} cannot be reached "
            f"({address.redacted(str(error)):.120}); start one with: "
            f"chroma run --path <folder> --port {port}"
        ) from error
    return client


def shown(place: object) -> str:
    """Return a place as it may be shown and stored: without the user and password of a server."""
    text = str(place)
    scheme, apart, rest = text.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if apart else text
