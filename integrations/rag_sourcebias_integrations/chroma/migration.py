"""Give a Chroma collection the vectors of a projected encoder; no text is encoded again."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.retrieval.projection import (
    PROJECTION_FILE,
    ProjectedEncoder,
    SourceProjection,
    read_projection,
)
from rag_sourcebias_integrations.chroma.carry import (
    CLOSE,
    MOVING,
    Agreed,
    Carried,
    EncodedVectors,
    Ledger,
    Phase,
    Progress,
    ProjectedVectors,
    StoredVectors,
    TextVectors,
    Usurper,
    Vectors,
    VectorSource,
    carry,
    far_apart,
    ledger_name,
    make_equal,
    misfits,
    opened,
    sample_of,
    texts_of,
    verify_vectors,
)
from rag_sourcebias_integrations.chroma.collections import pages, request_size
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction, as_function

# A collection and its copy under another encoder: switch, go back, carry over, finish.


_log = logging.getLogger(__name__)
_ROUNDS = 10
_NAMED = 5  # documents that a message names


@dataclass(slots=True, kw_only=True)
class Migration:
    """A copy of a collection under another encoder; the original is in use until :meth:`switch`.

    No write is lost on the way. Handles that applications opened before the switch go on writing
    to the retired collection: :meth:`carry` brings those writes to the one in use, and so do
    :meth:`roll_back` and :meth:`finish`, which alone deletes the retired one. What has to be
    remembered is kept in Chroma (``<name>--rsb-ledger``: hashes, no text), so that another process
    can go on after a kill: :func:`restore_collection`, then the same call that made the migration.

    A document that was written in both collections since they were last compared keeps the version
    of the collection in use, and the log names it.
    Chroma has no conditional write and does not say when a document was written, so two things
    remain: writes of one document through an old and a new handle within the same few milliseconds
    of a pass, and an update or deletion through a new handle of a document that an old handle
    added and no pass has carried yet, which Chroma takes for a document that does not exist.
    :func:`follow_collection` opens handles to which neither can happen.

    Parameters
    ----------
    client : chromadb client
    name : str
        Name that applications open.
    old, new : chromadb.Collection
        The original, and its copy under the new encoder.
    source : VectorSource
        Gives the copy's vectors.
    size : int
        Documents per request.
    agreed : Agreed, optional
        What both held when the copy was made.
    n_documents : int
    progress : Progress
    """

    client: Any
    name: str
    old: Any
    new: Any
    source: VectorSource
    size: int
    n_documents: int
    progress: Progress
    agreed: Agreed = field(default_factory=Agreed, repr=False)
    _ledger: Ledger = field(init=False, repr=False)
    _old_vectors: Vectors | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._ledger = Ledger(self.client, self.name)

    @property
    def state(self) -> Phase:
        """How far it is."""
        return self.progress.phase

    @property
    def shadow_name(self) -> str:
        """Name of the copy while it is not in use."""
        return self.progress.shadow_name

    def switch(self) -> Any:  # noqa: ANN401 - a chromadb collection
        """Let the copy take the name, and return it; the original is renamed and kept.

        What changed since the copy was made is copied first, until both hold the same. For a few
        milliseconds between two renames no collection has the name; one that somebody makes under
        it in this moment is moved aside, and what was written to it is carried over.
        Applications that are running keep the collection they opened, unless they opened it by
        :func:`follow_collection`: restart them, then :meth:`finish`.

        Raises
        ------
        DataError
            If it was switched before, both do not agree after ten rounds because documents are
            written all the time, or a name is taken. The original then has its name.
        """
        self._expect(Phase.READY, "ready")
        for _ in range(_ROUNDS):  # what was written meanwhile; only the original is read
            if not carry(
                self.old, self.new, self.source, self.agreed, size=self.size, announce=lambda: None
            ).ids:
                break
        self._enter(Phase.SWITCHING)
        try:
            # From now on, handles that follow the name wait.
            self._ledger.keep(self.progress.old, self._equal(), everything=True)
            self._exchange(
                (self.old, self.progress.before_name), (self.new, self.name), back_to=self.name
            )
        except BaseException:
            self._enter(Phase.READY)
            raise
        try:
            self.carry()  # before handles that follow the name go on
        finally:
            self._enter(Phase.SWITCHED)
        return self.new

    def roll_back(
        self,
        encoder: str | Path | Encoder | Callable[[list[str]], Sequence[Any]] | None = None,
    ) -> Any:  # noqa: ANN401 - a chromadb collection
        """Give the original its name again, with what was written since, and return it.

        Parameters
        ----------
        encoder : str, Path, Encoder or callable, optional
            Embeds texts as the original's were, for documents written since the switch (as
            :func:`migrate_encoder` takes it, or a function of a list of texts such as LangChain's
            ``embed_documents``); the original's own embedding function by default.

        Raises
        ------
        DataError
            If it was not switched, or documents were written since and what embedded the original
            is not known (nothing is renamed then).
        """
        self._expect(Phase.SWITCHED, "switched")
        self._old_vectors = self._vectors_of_old(encoder)
        self._exhaust()
        self._enter(Phase.ROLLING_BACK)
        try:
            self._exhaust()
            self._exchange((self.new, self.shadow_name), (self.old, self.name), back_to=self.name)
        except BaseException:
            self._enter(Phase.SWITCHED)
            raise
        self.progress.phase = Phase.ROLLED_BACK  # kept below: handles that follow the name wait
        try:
            self.carry()
        finally:
            self._enter(Phase.ROLLED_BACK)
        return self.old

    def carry(self) -> int:
        """Bring what was written to retired collections to the one in use; one pass.

        Returns
        -------
        int
            Documents written or deleted in the collection in use.

        Raises
        ------
        DataError
            If there are documents that no vector can be made of (the others are carried).
        """
        return self._told([self._carry(*direction) for direction in self._directions()])

    def finish(self, *, quiet: float = 10.0) -> Any:  # noqa: ANN401 - a chromadb collection
        """Carry over what is left, delete the retired collection, and return the one in use.

        Parameters
        ----------
        quiet : float
            Seconds, at least 0, in which nobody may write to the retired collection: a write after
            the last look would be lost.

        Raises
        ------
        DataError
            If it was not switched, or the retired collection is still written to, with ids.
        """
        if self.state is not Phase.ROLLED_BACK:
            self._expect(Phase.SWITCHED, "switched or rolled back")
        if quiet < 0:
            raise DataError(f"quiet={quiet!r} is negative; give seconds, at least 0")
        self._exhaust()
        time.sleep(quiet)
        if n := self.carry():
            raise DataError(
                f"{n} documents of {self.name!r} were written within {quiet:g} s through handles "
                "that were opened before; they were carried over, and nothing was deleted: restart "
                "the applications that hold such handles, then finish"
            )
        active = self.new if self.state is Phase.SWITCHED else self.old
        self._enter(Phase.FINISHED)
        clear_finished(self.client, self.name, self.progress)
        return active

    def _expect(self, phase: Phase, wanted: str) -> None:
        if self.state is not phase:
            raise DataError(f"the migration of {self.name!r} is {self.state}, not {wanted}")

    def _enter(self, phase: Phase) -> None:
        self.progress.phase = phase
        self._ledger.write(self.progress)

    def _equal(self) -> Agreed:
        agreed = Agreed()
        for _ in range(_ROUNDS):
            found = make_equal(self.old, self.new, self.source, agreed, size=self.size)
            self.n_documents = found.n_documents
            if not found.ids:
                return agreed
        raise self._restless(found.ids)

    def _exhaust(self) -> None:
        """Carry until nothing is left, in both directions before going back."""
        for _ in range(_ROUNDS):
            found = [self._carry(*direction) for direction in self._directions()]
            if self.state in (Phase.SWITCHED, Phase.ROLLING_BACK) and self._old_vectors is not None:
                found.append(self._carry(self.new, self.old, self._old_vectors, self.progress.old))
            self._told(found)
            ids = [doc_id for one in found for doc_id in one.ids]
            if not ids:
                return
        raise self._restless(ids)

    def _restless(self, ids: list[str]) -> DataError:
        return DataError(
            f"collection {self.name!r} was written to in each of {_ROUNDS} rounds of copying, last "
            f"{len(ids)} documents, among them {ids[:_NAMED]}; nothing is lost: try again when "
            "fewer documents are written"
        )

    def _directions(self) -> list[tuple[Any, Any, Vectors, str]]:
        """(from, to, vectors, whose agreement) of what retired collections may have received."""
        active = self.old
        found: list[tuple[Any, Any, Vectors, str]] = []
        if self.state in (Phase.SWITCHING, Phase.SWITCHED, Phase.ROLLING_BACK):
            active = self.new
            found = [(self.old, self.new, self.source, self.progress.old)]
        elif self.state is Phase.ROLLED_BACK:
            found = [(self.new, self.old, self._vectors_to_old(), self.progress.old)]
        by_id = _by_id(self.client)
        for usurper in self.progress.usurpers:
            if usurper.id not in by_id:
                continue
            vectors: Vectors = self.source
            if active is self.old:
                stored = usurper.during is Phase.SWITCHING  # by applications with the old encoder
                vectors = StoredVectors() if stored else self._vectors_to_old()
            elif usurper.during is not Phase.SWITCHING:
                vectors = TextVectors(self.source.function)
            found.append((by_id[usurper.id], active, vectors, usurper.id))
        return found

    def _carry(self, source: Any, target: Any, vectors: Vectors, of: str) -> Carried:  # noqa: ANN401
        """One pass, with what is agreed on read before and kept throughout."""
        agreed = self._ledger.agreed(of)
        usurped = of != self.progress.old
        found = carry(
            source,
            target,
            vectors,
            agreed,
            size=self.size,
            announce=partial(self._ledger.keep, of, agreed),
            otherwise=self._ledger.agreed(self.progress.old) if usurped else None,
        )
        if found.conflicts:
            _log.warning(
                "%d documents of %r were written both through old and new handles, among them %s: "
                "the version of the collection in use stays",
                len(found.conflicts),
                self.name,
                found.conflicts[:_NAMED],
            )
        self._ledger.keep(of, agreed)
        return found

    def _told(self, found: list[Carried]) -> int:
        lacking = [doc_id for one in found for doc_id in one.lacking]
        if lacking:
            raise DataError(
                f"{len(lacking)} documents were written to a retired collection of {self.name!r} "
                f"without text or vector, among them {lacking[:_NAMED]}; add what is missing, or "
                "delete them there"
            )
        return sum(len(one.ids) for one in found)

    def _vectors_to_old(self) -> Vectors:
        return self._old_vectors or self._vectors_of_old(None)

    def _vectors_of_old(self, encoder: Any) -> Vectors:  # noqa: ANN401 - an encoder
        """What embeds texts as the original's were; told by some of them, when first asked."""
        function: Any = encoder
        if encoder is None:
            function = getattr(self.old, "_embedding_function", None)
        elif not callable(encoder):
            function = as_function(encoder)
        checked = False

        def embed(texts: list[str]) -> Any:  # noqa: ANN401
            nonlocal checked
            if function is None:
                raise DataError(
                    f"documents of {self.name!r} were written since the switch, and what embedded "
                    "the original is not known; give it: roll_back(encoder=…)"
                )
            if not checked:
                page = self.old.get(limit=100, include=["documents", "metadatas", "embeddings"])
                if misfits(page, function):
                    raise DataError(
                        f"{function!r:.80} does not give the vectors that collection "
                        f"{self.old.name!r} holds; give what embedded it: roll_back(encoder=…)"
                    )
                checked = True
            return function(texts)

        return TextVectors(embed)

    def _exchange(self, first: tuple[Any, str], second: tuple[Any, str], *, back_to: str) -> None:
        """Rename both collections, or neither; one made under the free name is moved aside."""
        collection, after = first
        _rename(collection, after)
        try:
            for attempt in range(_ROUNDS):
                try:
                    _rename(*second)
                except DataError:
                    if attempt == _ROUNDS - 1 or not _move_usurper(
                        self.client, self.name, self.progress, self._ledger
                    ):
                        raise
                else:
                    return
        except BaseException:
            _move_usurper(self.client, self.name, self.progress, self._ledger)
            collection.modify(name=back_to)
            raise


def restore_collection(client: Any, name: str) -> Any:  # noqa: ANN401 - chromadb client and collection
    """Give a collection its name again after a switch or a way back that was killed.

    The collection that had the name before the interrupted exchange has it afterwards; where the
    exchange was complete, it stays. Then make the same call that made the migration: it goes on.
    A collection that somebody made under the name meanwhile is moved aside, and what was written to
    it is carried over: at once where the original is in use, when the migration goes on otherwise.

    Returns
    -------
    chromadb.Collection
        As it is where there is nothing to restore.

    Raises
    ------
    DataError
        If the name is missing and nothing is known of a migration.
    """
    ledger = Ledger(client, name)
    progress = ledger.read()
    found = {collection.name: collection for collection in client.list_collections()}
    if progress is None:
        if name not in found:
            raise DataError(
                f"collection {name!r} is missing and no migration of it is known; there are "
                f"{sorted(found)}"
            )
        return found[name]
    if progress.phase is Phase.FINISHED:
        clear_finished(client, name, progress)
        return client.get_collection(name, embedding_function=None)
    moving = progress.phase in MOVING
    phase = give_name_back(client, name, progress, ledger)
    progress.phase = phase
    if not moving or phase not in (Phase.SWITCHED, Phase.ROLLED_BACK):
        ledger.write(progress)  # otherwise what the exchange left is carried by the migration first
    if phase in (Phase.READY, Phase.ROLLED_BACK):
        by_id = _by_id(client)
        for usurper in progress.usurpers:
            if usurper.during is Phase.SWITCHING and usurper.id in by_id:
                agreed = ledger.agreed(usurper.id)
                keep = partial(ledger.keep, usurper.id, agreed)
                carry(
                    by_id[usurper.id],
                    by_id[progress.old],
                    StoredVectors(),
                    agreed,
                    size=100,
                    announce=keep,
                    otherwise=ledger.agreed(progress.old),
                )
                keep()
    return client.get_collection(name, embedding_function=None)


def _by_id(client: Any) -> dict[str, Any]:  # noqa: ANN401
    return {str(one.id): one for one in client.list_collections()}


def give_name_back(client: Any, name: str, progress: Progress, ledger: Ledger) -> Phase:  # noqa: ANN401
    """Give the name to the collection that it belongs to, and return how far the migration is."""
    by_id = _by_id(client)
    holder = next((known for known, one in by_id.items() if one.name == name), None)
    before, after = {
        Phase.SWITCHING: (Phase.READY, Phase.SWITCHED),
        Phase.ROLLING_BACK: (Phase.SWITCHED, Phase.ROLLED_BACK),
    }.get(progress.phase, (progress.phase, progress.phase))
    users = {
        Phase.READY: progress.old,
        Phase.SWITCHED: progress.new,
        Phase.ROLLED_BACK: progress.old,
    }
    phase = after if holder == users[after] else before
    wanted = users[phase]
    if wanted not in by_id:
        raise DataError(
            f"the collection that had the name {name!r} was deleted; there are "
            f"{sorted(one.name for one in by_id.values())}"
        )
    if holder != wanted:
        _move_usurper(client, name, progress, ledger)
        _rename(by_id[wanted], name)
    return phase


def clear_finished(client: Any, name: str, progress: Progress) -> None:  # noqa: ANN401
    """Delete what a finished migration leaves: all but the collection that has the name."""
    used = client.get_collection(name, embedding_function=None).id
    retired = {progress.old, progress.new, *(one.id for one in progress.usurpers)} - {str(used)}
    for known, one in _by_id(client).items():
        if known in retired:
            client.delete_collection(one.name)
    Ledger(client, name).delete()


def _move_usurper(client: Any, name: str, progress: Progress, ledger: Ledger) -> bool:  # noqa: ANN401
    """Rename a collection that somebody made under the name, and remember it."""
    usurper = opened(client, name)
    if usurper is None or str(usurper.id) in (progress.old, progress.new):
        return False
    progress.usurpers.append(Usurper(id=str(usurper.id), during=progress.phase))
    ledger.write(progress)
    _rename(usurper, f"{name}--usurper-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    _log.warning(
        "collection %r was made by somebody else meanwhile: moved to %r", name, usurper.name
    )
    return True


def _rename(collection: Any, name: str) -> None:  # noqa: ANN401
    try:
        collection.modify(name=name)
    except Exception as error:  # of which kind depends on the client
        raise DataError(
            f"collection {collection.name!r} cannot be renamed to {name!r} ({error!s:.200})"
        ) from error


# Copy a Chroma collection under another encoder, beside the original.


_BATCH = 256  # encoding takes most of the time, so a small batch loses little when it is killed


def migrate_encoder(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    batch_size: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Migration:
    """Encode a collection's documents again, into a copy beside it, and verify the copy.

    Chroma cannot change the encoder of a collection. The copy is named
    ``<name>--rsb-<8 digits of the encoder's fingerprint>``; it has the same ids, texts, metadata
    and index settings. Nothing changes for applications until :meth:`Migration.switch`, and writes
    go on throughout. A run that was killed goes on where it was, with what was switched or rolled
    back by then. What LlamaIndex stored is embedded as LlamaIndex embeds it,
    with the metadata that is not excluded.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client.
    encoder : str, Path, Encoder or EncoderEmbeddingFunction
        As :class:`EncoderEmbeddingFunction` takes it.
    client : chromadb client
        The client of the collection.
    batch_size : int, optional
        Documents per request; 256, or fewer where the client takes fewer, by default.
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        If documents have no stored text (their ids are listed), the encoder does not give the same
        vector twice, or another encoder's migration of the collection is not finished.
    """
    source = EncodedVectors(as_function(encoder))
    most = request_size(collection, None)
    return copy_collection(
        collection,
        source,
        client=client,
        size=min(_BATCH, most) if batch_size is None else request_size(collection, batch_size),
        page_size=most,
        on_progress=on_progress,
    )


def copy_collection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    source: VectorSource,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    size: int,
    page_size: int,
    on_progress: Callable[[int], None] | None,
) -> Migration:
    """Fill a copy beside a collection and verify it, or go on with a migration."""
    ledger = Ledger(client, collection.name)
    progress = ledger.read()
    moving = progress is not None and progress.phase in MOVING
    if progress is not None and moving:
        progress.phase = give_name_back(client, collection.name, progress, ledger)
        collection = client.get_collection(collection.name, embedding_function=None)
    name = collection.name
    if progress is not None and progress.phase is Phase.FINISHED:
        clear_finished(client, name, progress)
        progress = None
    mark = blake2b(source.function.encoder.fingerprint.encode(), digest_size=4).hexdigest()
    shadow_name = f"{name}--rsb-{mark}"
    if progress is None:
        old = collection
        settings = collection.configuration_json or {}
        # with the index settings and metadata of the original; or one that a killed run left
        shadow = client.get_or_create_collection(
            shadow_name,
            embedding_function=source.function,
            configuration={k: settings[k] for k in ("hnsw", "spann") if settings.get(k)} or None,
            metadata=collection.metadata or None,
        )
        progress = Progress(
            phase=Phase.READY,
            old=str(old.id),
            new=str(shadow.id),
            shadow_name=shadow_name,
            before_name=f"{name}--before-{datetime.now(UTC):%Y%m%dT%H%M%S}",
        )
    elif progress.shadow_name != shadow_name:
        raise DataError(
            f"collection {name!r} is in a migration to another encoder "
            f"({progress.shadow_name!r}, {progress.phase}); finish it, or roll it back and "
            "finish it, first"
        )
    else:
        old, shadow = _both(client, collection, progress, source.function)
    migration = Migration(
        client=client,
        name=name,
        old=old,
        new=shadow,
        source=source,
        size=page_size,
        n_documents=0,
        progress=progress,
    )
    migration.carry()
    if moving:  # handles that follow the name waited for this
        ledger.write(progress)
    if progress.phase is Phase.ROLLED_BACK:  # from here on the copy follows the original again
        progress.phase = Phase.READY
        ledger.write(progress)
    if progress.phase is Phase.READY:
        make_equal(old, shadow, source, migration.agreed, size=size, on_progress=on_progress)
        verify_vectors(shadow, source.function, size=page_size)
    migration.n_documents = shadow.count()
    return migration


def _both(
    client: Any,  # noqa: ANN401 - a chromadb client
    collection: Any,  # noqa: ANN401 - a chromadb collection
    progress: Progress,
    function: EncoderEmbeddingFunction,
) -> tuple[Any, Any]:
    """Return the original and the copy of a migration under way."""
    there = _by_id(client)
    missing = sorted({progress.old, progress.new} - there.keys())
    if missing:
        raise DataError(
            f"collection {collection.name!r} is in a migration of which a collection was deleted "
            f"(id {missing[0]}); delete {ledger_name(collection.name)!r} to start again"
        )
    still = str(collection.id) == progress.old
    old = collection if still else client.get_collection(there[progress.old].name)
    return old, client.get_collection(there[progress.new].name, embedding_function=function)


# Give a Chroma collection the vectors of a projected encoder; no text is encoded again.


_PAGE = 1_000  # vectors pass through Python's own numbers, at ten times their size


def migrate_projection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    projection: SourceProjection,
    *,
    client: Any,  # noqa: ANN401 - a chromadb client
    encoder: str | Path | Encoder | EncoderEmbeddingFunction,
    batch_size: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Migration:
    """Project a collection's stored vectors into a copy beside it, and verify the copy.

    As :func:`migrate_encoder`, with the vectors of the copy computed from the stored ones: only a
    sample of the texts is encoded, to show that the debiased encoder gives these vectors. Stored
    vectors of length 1 have length 1 afterwards; others are projected without scaling, as the
    encoder does. Documents without text are copied too, but cannot be among the sample.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client; filled with the encoder that the projection was fitted on.
    projection : SourceProjection
    client : chromadb client
        The client of the collection.
    encoder : str, Path, Encoder or EncoderEmbeddingFunction
        What encodes queries of the copy: the folder that
        :func:`~rag_sourcebias.neural.loading.write_projected_model` wrote, which Chroma
        remembers by its path, or a
        :class:`~rag_sourcebias.retrieval.ProjectedEncoder`.
    batch_size : int, optional
        Documents per request; 1,000, or fewer where the client takes fewer, by default.
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        Before anything is written, if the stored vectors have another dimension, the collection
        was filled by another encoder than the projection was fitted on, the encoder holds another
        projection or does not give the projected vectors, or there is no text to tell by; also if
        documents have no vector.
    """
    source = ProjectedVectors(as_function(encoder), projection)
    function = source.function
    held = None
    folder = function.get_config().get("model")
    if folder is not None:
        file = Path(folder).expanduser() / PROJECTION_FILE
        held = read_projection(file) if file.is_file() else None
    elif isinstance(function.encoder, ProjectedEncoder):
        held = function.encoder.projection
    if held is not None and held.fingerprint != projection.fingerprint:  # queries would not fit
        raise DataError(
            f"encoder {function.encoder.name!r} holds the projection {held.fingerprint!r}, given "
            f"is {projection.fingerprint!r}; give the one it was made with"
        )
    stored = (collection.configuration_json or {}).get("embedding_function") or {}
    ours = stored.get("name") == EncoderEmbeddingFunction.name()
    recorded = str(stored.get("config", {}).get("fingerprint") or "") if ours else ""
    if projection.encoder and recorded and _model(projection.encoder) != _model(recorded):
        raise DataError(
            f"collection {collection.name!r} was filled by {recorded!r}, but the projection was "
            f"fitted on vectors of {projection.encoder!r}; fit one on the collection's encoder"
        )
    most = request_size(collection, None)
    size = min(_PAGE, most) if batch_size is None else request_size(collection, batch_size)
    _check_vectors(collection, source, size=size)
    return copy_collection(
        collection,
        source,
        client=client,
        size=size,
        page_size=min(_PAGE, most),
        on_progress=on_progress,
    )


def _model(fingerprint: str) -> tuple[str, ...]:
    """Part of a fingerprint that names the model: dtype or device do not move vectors far."""
    first, *others = fingerprint.split("|")  # others: what is done to its vectors
    kind, _, rest = first.partition(":")
    return (rest.partition(":")[0] if kind == "sentence-transformers" else first, *others)


def _check_vectors(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    source: ProjectedVectors,
    *,
    size: int,
) -> None:
    """Refuse, before anything is written, stored vectors that are not of the encoder given."""
    page = next(pages(collection, size, include=["documents", "metadatas", *source.reads]), None)
    if page is None:
        return
    source.require(page)
    ids = sample_of(page)
    if not ids:
        raise DataError(
            f"the first {len(page['ids'])} documents of collection {collection.name!r} have no "
            "stored text: whether the encoder gives their vectors cannot be told; add some texts"
        )
    again = np.stack(source.function(texts_of(page, ids)))
    projected = source.vectors(page, ids)
    if again.shape != projected.shape:
        raise DataError(
            f"encoder {source.function.encoder.name!r} gives {again.shape[1]} dimensions, the "
            f"collection has {projected.shape[1]}; give the projected model of its encoder"
        )
    wrong = far_apart(again, projected, CLOSE)
    if wrong.any():
        raise DataError(
            f"encoder {source.function.encoder.name!r} does not give the projected vectors of "
            f"{wrong.sum()} of {len(ids)} documents, among them "
            f"{ids[int(wrong.argmax())]!r}; it must be the encoder that filled the collection, "
            "with this projection"
        )
