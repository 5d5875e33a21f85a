from .annotate import annotation_units as annotation_units
from .annotate import write_annotation_sheets as write_annotation_sheets
from .annotated import majority_tables as majority_tables
from .annotated import read_annotations as read_annotations
from .checks import sound_pairs as sound_pairs
from .rewrites import RewritePrompt as RewritePrompt
from .writing import write_beir as write_beir
