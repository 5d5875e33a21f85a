from .measure import fit_similarity_adjustment as fit_similarity_adjustment
from .measure import read_adjustment as read_adjustment
from .measure import write_adjustment as write_adjustment
