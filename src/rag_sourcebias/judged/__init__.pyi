from .judges import GradedPrompt as GradedPrompt
from .judges import LLMJudge as LLMJudge
