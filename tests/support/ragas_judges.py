"""Language models for ragas that need no server: fixed answers, prompts kept."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.outputs import Generation, LLMResult
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM

_SAID = {"statement": "s1", "reason": "r"}
_OTHER = {"statement": "s2", "reason": "r"}


class FixedModernLLM(InstructorBaseRagasLLM):
    """Finds two statements in any text, one of them true: F1 is 2/3."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def generate(self, prompt: str, response_model: Any) -> Any:
        self.prompts.append(prompt)
        if "TP" in response_model.model_fields:
            return response_model(TP=[_SAID], FP=[_OTHER], FN=[])
        return response_model(statements=["s1", "s2"])

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        return self.generate(prompt, response_model)


class FixedLegacyLLM(BaseRagasLLM):
    """The same for the legacy metrics; an answer that holds "unreadable" gets no JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []

    def generate_text(self, prompt: Any, *_: Any, **__: Any) -> LLMResult:
        text = prompt.to_string()
        self.prompts.append(text)
        found: Any = {"statements": ["s1", "s2"]}
        if '"TP"' in text:
            found = {"TP": [_SAID], "FP": [_OTHER], "FN": []}
        said = "no JSON" if "unreadable" in text else json.dumps(found)
        return LLMResult(generations=[[Generation(text=said)]])

    async def agenerate_text(self, prompt: Any, *_: Any, **__: Any) -> LLMResult:
        return self.generate_text(prompt)

    def is_finished(self, response: Any) -> bool:
        return True
