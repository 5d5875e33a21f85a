from .audit import audit_source as audit_source
from .shards.audit import audit_source_sharded as audit_source_sharded
from .shards.work import LocalEngine as LocalEngine
from .shards.work import ShardedRetriever as ShardedRetriever
