from .beir import write_beir as write_beir
from .samples import list_datasets as list_datasets
from .shards import open_sharded as open_sharded
from .trec import write_run as write_run
