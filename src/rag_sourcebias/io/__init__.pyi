from .beir import write_beir as write_beir
from .samples import list_datasets as list_datasets
from .shards import open_sharded as open_sharded
from .tag_stores import MemoryTagStore as MemoryTagStore
from .tag_stores import SqliteTagStore as SqliteTagStore
from .tag_stores import open_tag_store as open_tag_store
from .trec import write_run as write_run
