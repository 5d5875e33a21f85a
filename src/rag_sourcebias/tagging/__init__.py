"""Tags of documents: the keys that name them and the stores that hold them."""

from rag_sourcebias.tagging.declared import ProvenanceTagger
from rag_sourcebias.tagging.ids import IdTagger
from rag_sourcebias.tagging.jsonl_store import JsonlTagStore
from rag_sourcebias.tagging.keys import METADATA_KEYS, from_metadata, to_metadata
from rag_sourcebias.tagging.memory_store import MemoryTagStore
from rag_sourcebias.tagging.opening import open_tag_store
from rag_sourcebias.tagging.rule_file import read_rules
from rag_sourcebias.tagging.rules import RuleTagger
from rag_sourcebias.tagging.sqlite_store import SqliteTagStore
from rag_sourcebias.tagging.store import TagStore, content_hash
from rag_sourcebias.tagging.tag_rule import TagRule
from rag_sourcebias.tagging.taggers import Tagger, tag_documents

__all__ = [
    "METADATA_KEYS",
    "IdTagger",
    "JsonlTagStore",
    "MemoryTagStore",
    "ProvenanceTagger",
    "RuleTagger",
    "SqliteTagStore",
    "TagRule",
    "TagStore",
    "Tagger",
    "content_hash",
    "from_metadata",
    "open_tag_store",
    "read_rules",
    "tag_documents",
    "to_metadata",
]
