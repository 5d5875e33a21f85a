"""Tag nodes on their way into an index, without a byte of change to what is embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast
from uuid import uuid4

from llama_index.core.schema import MetadataMode, TransformComponent
from pydantic import PrivateAttr

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import FINGERPRINT_KEY, METADATA_KEYS, UNKNOWN, TagStore, to_metadata
from rag_sourcebias.observe.events import DroppedEvents, guarded
from rag_sourcebias.tagging.documents import (
    Tagger,
    tag_documents,
    taggers_fingerprint,
)
from rag_sourcebias_integrations._require import taggers_of

_KEYS = (*METADATA_KEYS, FINGERPRINT_KEY)
_EXCLUDED = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")


class SourceTagger(TransformComponent):
    """A transformation that tags nodes; put it last, after the embedding model.

    Tags go into the metadata of copies of the nodes, excluded from the text that is embedded and
    from the text shown to the language model: both are byte-identical with and without tags. Given
    a store, tags go there under the node's id, unknown ones too, and the nodes are passed on as
    they are.

    A node is tagged by the id of the document it was cut from, its own text and its metadata. A
    node of which no tagger knows anything keeps the tags it has; one for which a tagger raises is
    left as it was and counted in :attr:`dropped`.

    Two things to know about ``IngestionPipeline``. Its cache keys a step by the step's input and
    fields: :attr:`fingerprint` changes with the taggers, so that stale tags never come from it,
    and tags before the embedding model would make it embed again whenever they change. Its
    docstore skips documents that did not change before any step sees them (``UPSERTS``): to tag
    them by new taggers, tag the store in place (``rag-sourcebias tag apply``).

    Parameters
    ----------
    taggers : Tagger or sequence of Tagger
        In order of trust, see :func:`rag_sourcebias.tagging.tag_documents`. With ``num_workers``
        above 1 they must pickle, and what worker processes lose is logged there, not counted here.
    store : TagStore, optional
        Not with ``num_workers`` above 1.
    fingerprint : str, optional
        Identity of the taggers, where they cannot tell it themselves.

    Raises
    ------
    DataError
        Without taggers, or if their identity cannot be told.
    """

    fingerprint: str
    _taggers: tuple[Tagger, ...] = PrivateAttr()
    _store: TagStore | None = PrivateAttr()
    _identity: str = PrivateAttr()
    _dropped: DroppedEvents = PrivateAttr(default_factory=DroppedEvents)

    def __init__(
        self,
        taggers: Tagger | Sequence[Tagger],
        *,
        store: TagStore | None = None,
        fingerprint: str | None = None,
    ) -> None:
        several = taggers_of(taggers)
        identity = fingerprint or taggers_fingerprint(several)
        # A step that writes elsewhere must run: a cache that outlives the store would skip it. So
        # its results are kept for this object only.
        super().__init__(fingerprint=identity if store is None else f"{identity}:{uuid4().hex}")
        self._taggers, self._store, self._identity = several, store, identity

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows, part of the key in its cache."""
        return "SourceTagger"

    @property
    def dropped(self) -> DroppedEvents:
        """Nodes that could not be tagged, by reason."""
        return self._dropped

    def __call__(self, nodes: Sequence[Any], **kwargs: Any) -> Sequence[Any]:  # noqa: ANN401, ARG002
        """Tag nodes.

        Returns
        -------
        sequence of BaseNode
            Tagged copies in the same order. Not the nodes themselves: a docstore that compares
            documents would take them for changed, and embed them again at every run.
        """
        found: list[tuple[int, DocTags]] = []
        for index, node in enumerate(nodes):
            with guarded(self._dropped, "tagger raised"):
                document = (node.ref_doc_id or node.node_id, _text(node), dict(node.metadata))
                found += [(index, tags) for _, tags in tag_documents([document], self._taggers)]
        if self._store is not None:
            with guarded(self._dropped, "tag store failed"):
                rows = [(nodes[index].node_id, tags) for index, tags in found]
                self._store.put(rows, {nodes[i].node_id: _text(nodes[i]) for i, _ in found})
            return nodes
        tagged = list(nodes)
        for index, tags in found:
            with guarded(self._dropped, "tags could not be written"):
                tagged[index] = self._copy(nodes[index], tags)
        return tagged

    def __reduce__(self) -> tuple[Callable[..., SourceTagger], tuple[Any, ...]]:
        # LlamaIndex's way leaves out, silently, whatever does not pickle: here the taggers.
        if self._store is not None:
            raise DataError(
                "a SourceTagger with a store cannot be sent to another process, where the store "
                "would be another one; expected num_workers=None"
            )
        return partial(SourceTagger, fingerprint=self._identity), (self._taggers,)

    def _copy(self, node: Any, tags: DocTags) -> Any:  # noqa: ANN401
        update: dict[str, object] = {
            name: [*getattr(node, name), *(k for k in _KEYS if k not in getattr(node, name))]
            for name in _EXCLUDED
        }
        if tags != UNKNOWN:
            kept = {key: value for key, value in node.metadata.items() if key not in _KEYS}
            update["metadata"] = kept | to_metadata(tags) | {FINGERPRINT_KEY: self._identity}
        return node.model_copy(update=update)


def _text(node: Any) -> str:  # noqa: ANN401
    return cast("str", node.get_content(metadata_mode=MetadataMode.NONE))
