from .relevance import SourceScores as SourceScores
