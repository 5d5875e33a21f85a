from .beir import write_beir as write_beir
from .samples import list_datasets as list_datasets
