from .data import load_styled_sample as load_styled_sample
from .measure import unfairness_score as unfairness_score
