from .samples import list_datasets as list_datasets
from .tag_stores import MemoryTagStore as MemoryTagStore
from .tag_stores import SqliteTagStore as SqliteTagStore
from .tag_stores import open_tag_store as open_tag_store
