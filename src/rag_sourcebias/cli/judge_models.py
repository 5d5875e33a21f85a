"""The model and the way to ask it, from options of the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rag_sourcebias.cli.checks import choice
from rag_sourcebias.cli.completers import completer_of
from rag_sourcebias.cli.judge_budget import MeteredCompleter
from rag_sourcebias.cli.judge_options import MODES
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir
from rag_sourcebias.io.files import read_lines
from rag_sourcebias.judges import (
    CORRECTNESS,
    RELEVANCE_DOCUMENT,
    RELEVANCE_PASSAGE,
    CorrectnessJudge,
    GradedPrompt,
    LLMJudge,
    RelevanceJudge,
)
from rag_sourcebias.llm import CompletionCache, Prices
from rag_sourcebias.protocols import Completer

__all__ = ["Asking"]

_PROMPTS = {
    "dl": RELEVANCE_PASSAGE,
    "robust04": RELEVANCE_DOCUMENT,
    "correctness": CORRECTNESS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How a model is asked."""

    model: str
    base_url: str | None
    api: str
    timeout: float
    concurrency: int
    mode: str
    prompt: str | None
    grade_names: str
    votes: int
    temperature: float | None
    smoothing: float
    max_chars: int | None
    cache: Path | None
    price_in: float | None
    price_out: float | None
    max_cost: float | None

    def answers(self) -> CompletionCache:
        """Return the cache of answers."""
        return CompletionCache((self.cache or cache_dir()) / "completions.sqlite")

    def prices(self) -> Prices | None:
        """Return the prices, None where there are none."""
        if self.price_in is None and self.price_out is None:
            if self.max_cost is not None:
                raise DataError("--max-cost needs --price-in and --price-out")
            return None
        return Prices(prompt=self.price_in or 0.0, completion=self.price_out or 0.0)

    def prompts_per_request(self, n_grades: int) -> int:
        """Return how often a prompt is sent to score its grades."""
        echoed = self.model.startswith("openai:") and self.api == "completions"
        return n_grades if echoed else 1

    def judge(self, kind: type[LLMJudge]) -> LLMJudge:
        """Build the judge; nothing is asked and no model is loaded yet."""
        prices = self.prices()
        prompt = self._prompt(kind)
        mode = choice("mode", self.mode, MODES)
        completer = self._completer()
        if prices is not None and self.max_cost is not None:
            completer = MeteredCompleter(completer, prices, self.max_cost)
        return kind(
            completer,
            prompt,
            mode=mode,
            votes=self.votes,
            temperature=self.temperature,
            smoothing=self.smoothing,
            max_chars=self.max_chars,
            cache=self.answers(),
            concurrency=self.concurrency,
            prices=prices,
        )

    def recipe(self, kind: type[LLMJudge]) -> Callable[[], LLMJudge]:
        """Return what builds the judge in another process, whose folder may be another."""
        prompt = self.prompt
        if prompt is not None and prompt not in _PROMPTS:
            prompt = str(Path(prompt).absolute())
        cache = (self.cache or cache_dir()).absolute()
        return partial(replace(self, prompt=prompt, cache=cache).judge, kind)

    def _completer(self) -> Completer:
        return completer_of(
            self.model,
            base_url=self.base_url,
            api=self.api,
            timeout=self.timeout,
            concurrency=self.concurrency,
            models=None if self.cache is None else self.cache / "models",
        )

    def _prompt(self, kind: type[LLMJudge]) -> GradedPrompt | None:
        if self.prompt is None:
            return None
        fitting = {RelevanceJudge: ("dl", "robust04"), CorrectnessJudge: ("correctness",)}
        names: Sequence[str] = fitting.get(kind, ())
        if self.prompt in names:
            return _PROMPTS[self.prompt]
        file = Path(self.prompt)
        if self.prompt in _PROMPTS or not file.is_file():
            raise DataError(
                f"--prompt {self.prompt!r} is neither one of {', '.join(names)} nor a file"
            )
        lines = [line for _, line in read_lines(file)]
        return GradedPrompt(
            name=file.name,
            template="\n".join(lines),
            labels=tuple(self.grade_names.split(",")),
        )
