from .files import load_judged_sample as load_judged_sample
from .judges import GradedPrompt as GradedPrompt
from .judges import LLMJudge as LLMJudge
