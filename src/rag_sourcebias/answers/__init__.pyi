from .data import AnswerScores as AnswerScores
from .files import read_answer_scores as read_answer_scores
from .measure import StyleAdjustment as StyleAdjustment
from .measure import fit_adjustment as fit_adjustment
from .measure import fit_similarity_adjustment as fit_similarity_adjustment
from .measure import read_adjustment as read_adjustment
from .measure import write_adjustment as write_adjustment
