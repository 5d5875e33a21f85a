from .judged import load_judged_sample as load_judged_sample
from .samples import list_datasets as list_datasets
