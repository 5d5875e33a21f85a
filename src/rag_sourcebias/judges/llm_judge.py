"""Judges that are language models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.judges.distributions import (
    Verdict,
    from_scores,
    from_text,
    from_votes,
    smoothed,
)
from rag_sourcebias.judges.prompts import (
    CORRECTNESS,
    PLACEHOLDERS,
    RELEVANCE_PASSAGE,
    VERBALISED,
    GradedPrompt,
)
from rag_sourcebias.judges.tally import Tally
from rag_sourcebias.llm.ask import Asker, Outcome
from rag_sourcebias.llm.cache import CompletionCache
from rag_sourcebias.llm.cost import Prices
from rag_sourcebias.llm.retry import RetryPolicy
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.completions import Request
from rag_sourcebias.types.judgments import JudgeItem, Judgments

__all__ = ["CorrectnessJudge", "JudgeMode", "LLMJudge", "RelevanceJudge"]

JudgeMode = Literal["scoring", "votes", "verbalised"]

_LONG = ("passage", "document", "answer")
_TEMPERATURE = {"scoring": 1.0, "votes": 1.0, "verbalised": 0.0}
_MAX_TOKENS = {"scoring": 1, "votes": 16, "verbalised": 128}


class LLMJudge:
    """Grade items with a language model and any prompt.

    Parameters
    ----------
    completer : Completer
    prompt : GradedPrompt, optional
        The default of the class; :class:`LLMJudge` itself has none.
    mode : {"scoring", "votes", "verbalised"}
        ``scoring``: log-probabilities of the labels, softmax-normalised, as [R]. ``votes``:
        shares of ``votes`` sampled answers. ``verbalised``: the distribution (or grade) that the
        model states.
    votes : int
        Samples per item in mode votes. At least half of them must be readable.
    temperature : float, optional
        Scoring: divides the log-probabilities before the softmax (above 1 flattens). Otherwise:
        of the sampling. 1 for scoring and votes, 0 for verbalised by default.
    smoothing : float
        Weight of the uniform distribution mixed in, in [0, 1).
    max_chars : int, optional
        Characters after which each passage, document or answer is cut; not cut by default.
    max_tokens : int, optional
        Of one written answer; 16 for votes, 128 for verbalised by default.
    cache : CompletionCache, optional
        Where answers are kept; without one, nothing can be resumed.
    concurrency : int, optional
    retry : RetryPolicy, optional
    prices : Prices, optional
    name : str, optional
        Name in reports; the completer's by default.

    Raises
    ------
    DataError
        If an option is out of range.
    """

    default_prompt: ClassVar[GradedPrompt | None] = None
    texts: ClassVar[tuple[str, ...]] = PLACEHOLDERS

    def __init__(
        self,
        completer: Completer,
        prompt: GradedPrompt | None = None,
        *,
        mode: JudgeMode = "scoring",
        votes: int = 5,
        temperature: float | None = None,
        smoothing: float = 0.0,
        max_chars: int | None = None,
        max_tokens: int | None = None,
        cache: CompletionCache | None = None,
        concurrency: int | None = None,
        retry: RetryPolicy | None = None,
        prices: Prices | None = None,
        name: str | None = None,
    ) -> None:
        if mode not in _TEMPERATURE:
            raise DataError(f"mode {mode!r} is not one of {', '.join(_TEMPERATURE)}")
        heat = _TEMPERATURE[mode] if temperature is None else temperature
        if not (math.isfinite(heat) and (heat > 0 or (heat == 0 and mode != "scoring"))):
            raise DataError(f"temperature {temperature!r} must be above 0 in mode {mode}")
        if mode == "votes" and heat == 0 and votes > 1:
            raise DataError("votes at temperature 0 are all alike; give a temperature above 0")
        if not 0 <= smoothing < 1:
            raise DataError(f"smoothing {smoothing!r} is outside [0, 1)")
        if votes < 1 or (max_chars is not None and max_chars < 1):
            raise DataError(f"votes {votes} and max_chars {max_chars} must be at least 1")
        self.name = name or completer.name
        self.completer = completer
        if (prompt := prompt or self.default_prompt) is None:
            raise DataError(
                "an LLMJudge needs a prompt; RelevanceJudge and CorrectnessJudge have one"
            )
        self.prompt: GradedPrompt = prompt
        self._check_prompt()
        self.mode: JudgeMode = mode
        self.votes = votes if mode == "votes" else 1
        self.temperature = heat
        self.smoothing = smoothing
        self.max_chars = max_chars
        self.max_tokens = max_tokens or _MAX_TOKENS[mode]
        self.prices = prices
        self._cache = cache
        self._concurrency = concurrency
        self._retry = retry

    @property
    def n_grades(self) -> int:
        """Number of grades."""
        return len(self.prompt.labels)

    @property
    def fingerprint(self) -> str:
        """Identity of the model, the prompt and every setting that changes the grades."""
        own = (self.mode, self.votes, self.temperature, self.smoothing, self.max_chars)
        return f"judge-1:{self.completer.fingerprint}:{self.prompt.digest}:{own}:{self.max_tokens}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {
            "judge": self.name,
            "prompt": f"{self.prompt.name} #{self.prompt.digest}",
            "mode": f"{self.mode} of {self.votes}" if self.mode == "votes" else self.mode,
            "temperature": f"{self.temperature:g}",
            "smoothing": f"{self.smoothing:g}",
            **({"texts cut at": f"{self.max_chars} characters"} if self.max_chars else {}),
            **self.completer.settings,
        }

    def requests(self, item: JudgeItem) -> list[Request]:
        """Return what is asked about one item."""
        prompt = self.prompt.fill(self._cut(item.texts))
        if self.mode == "scoring":
            return [Request(prompt=prompt, labels=self.prompt.labels)]
        if self.mode == "verbalised":
            keys = ", ".join(f'"{label.strip()}"' for label in self.prompt.labels)
            prompt += VERBALISED.replace("{labels}", keys)
        options = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        return [Request(prompt=prompt, sample=i, **options) for i in range(self.votes)]  # type: ignore[arg-type]

    def judge(
        self, items: Iterable[JudgeItem], *, on_progress: Callable[[int], None] | None = None
    ) -> Judgments:
        """Judge items; each ends with a distribution or with the reason why it has none.

        Parameters
        ----------
        items : iterable of JudgeItem
        on_progress : callable, optional
            Told the number of items that are done, whenever it grows.

        Raises
        ------
        DataError
            If there are no items, a pair occurs twice, or an item lacks a text of the prompt.
        CompletionError
            If the run had to stop before anything was answered (a wrong key, no server).
        """
        tally = Tally(list(items), n_grades=self.n_grades, per_item=self.votes)
        for item in tally.items:
            self.prompt.check(item.texts)  # before anything is asked and paid for
        asker = Asker(
            self.completer, cache=self._cache, concurrency=self._concurrency, retry=self._retry
        )
        requests = (request for item in tally.items for request in self.requests(item))
        for outcome in asker.ask(requests):
            outcomes = tally.add(outcome)
            if outcomes is None:
                continue
            tally.close(outcome.index // self.votes, self._verdict(outcomes))
            if on_progress is not None:
                on_progress(tally.done)
        return tally.judgments(
            judge=self.name, settings=self.settings, usage=asker.usage, prices=self.prices
        )

    def _verdict(self, outcomes: Sequence[Outcome]) -> Verdict:
        """Read the outcomes of one item."""
        labels = self.prompt.labels
        if self.mode == "scoring":
            verdict = from_scores(outcomes[0].answer or outcomes[0].error, labels, self.temperature)
        elif self.mode == "verbalised":
            verdict = from_text(outcomes[0].answer or outcomes[0].error, labels)
        else:
            samples = [outcome.answer or outcome.error for outcome in outcomes]
            verdict = from_votes(samples, labels, needed=(self.votes + 1) // 2)
        if verdict.probs is None:
            return verdict
        return replace(verdict, probs=smoothed(verdict.probs, self.smoothing))

    def _cut(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        if self.max_chars is None:
            return texts
        return {k: v[: self.max_chars] if k in _LONG else v for k, v in texts.items()}

    def _check_prompt(self) -> None:
        foreign = [name for name in self.prompt.placeholders if name not in self.texts]
        if foreign:
            raise DataError(
                f"prompt {self.prompt.name!r} asks for {{{foreign[0]}}}, which a "
                f"{type(self).__name__} does not have; it has {', '.join(self.texts)}"
            )


class RelevanceJudge(LLMJudge):
    """Grade the relevance of texts to queries; by default with the prompt of [R] listing 1.

    Parameters are those of :class:`LLMJudge`; items come from :meth:`JudgeItem.relevance`.
    """

    default_prompt = RELEVANCE_PASSAGE
    texts = ("query", "passage", "document")


class CorrectnessJudge(LLMJudge):
    """Grade whether answers agree with reference answers.

    Parameters are those of :class:`LLMJudge`; items come from :meth:`JudgeItem.correctness`.
    """

    default_prompt = CORRECTNESS
    texts = ("question", "reference", "answer")
