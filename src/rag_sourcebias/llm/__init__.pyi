from .ask import CompletionCache as CompletionCache
from .openai import OpenAICompleter as OpenAICompleter
