"""Language models for ragas that need no server: fixed answers, prompts kept."""

from typing import Any

from ragas.llms.base import InstructorBaseRagasLLM

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
