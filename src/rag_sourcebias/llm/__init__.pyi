from .ask import CompletionCache as CompletionCache
from .ask import ask_all as ask_all
from .openai import OpenAICompleter as OpenAICompleter
