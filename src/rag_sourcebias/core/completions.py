"""Log-perplexities of texts as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError, SourceBiasError

# What is asked of a language model and what comes back.


FailureReason = Literal[
    "timeout", "unreachable", "rate_limited", "server", "malformed", "rejected", "not_asked"
]
_PASSING: tuple[FailureReason, ...] = ("timeout", "unreachable", "rate_limited", "server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a language model.

    Parameters
    ----------
    prompt : str
    labels : tuple of str
        Not empty: ask for the log-probability of each label as the continuation of the prompt
        (the rest is then ignored). Empty: ask for text.
    max_tokens : int
        Most tokens of the answer.
    temperature : float
        At least 0; 0 asks for the most likely answer.
    sample : int
        Number of the sample; also its seed. Requests that differ only here are asked separately.
    """

    prompt: str
    labels: tuple[str, ...] = ()
    max_tokens: int = 16
    temperature: float = 0.0
    sample: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise DataError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not (self.temperature >= 0 and math.isfinite(self.temperature)):
            raise DataError(f"temperature must be finite and at least 0, got {self.temperature}")
        if self.labels and (len(set(self.labels)) < max(len(self.labels), 2) or "" in self.labels):
            raise DataError(f"labels {self.labels} must be at least two, distinct and not empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Text that a model wrote.

    Parameters
    ----------
    text : str
    finish_reason : str
        ``"stop"``, ``"length"``, ``"content_filter"``, ``"refusal"``, or what the server says.
    prompt_tokens, completion_tokens : int
    logprobs : tuple of float or None
        Log-probability of each token of the text, where the server gives them.
    """

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Completion:
        """Read what :meth:`to_dict` wrote."""
        logprobs = data.get("logprobs")
        return cls(**{**data, "logprobs": None if logprobs is None else tuple(logprobs)})


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScores:
    """Log-probability of each label as the continuation of one prompt.

    Parameters
    ----------
    logprobs : tuple of float
        One per label, in the order asked for. NaN where the model computed NaN.
    n_bounded : int
        Labels the server did not report; each stands at the smallest log-probability it did
        report, which no unreported label can exceed.
    prompt_tokens, completion_tokens : int
    """

    logprobs: tuple[float, ...]
    n_bounded: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def mass(self) -> float:
        """Probability that the continuation is one of the labels (an upper bound if bounded)."""
        return math.fsum(math.exp(value) for value in self.logprobs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LabelScores:
        """Read what :meth:`to_dict` wrote."""
        return cls(**{**data, "logprobs": tuple(data["logprobs"])})


class CompletionError(SourceBiasError):
    """One request failed; others may succeed.

    Parameters
    ----------
    message : str
    reason : FailureReason
    retry_after : float or None
        Seconds the server asked to wait.
    fatal : bool
        Every other request would fail alike (a wrong key, an unknown model): the run stops.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: FailureReason,
        retry_after: float | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason: FailureReason = reason
        self.retry_after = retry_after
        self.fatal = fatal

    @property
    def passing(self) -> bool:
        """Whether asking again may help. A malformed answer may be a proxy's hiccup."""
        return not self.fatal and (self.reason in _PASSING or self.reason == "malformed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run asked and was charged for.

    Parameters
    ----------
    requests : int
    from_cache : int
        Of these, answered from the cache or by an equal request.
    failed : int
        Of these, without an answer in the end.
    retries : int
        Times a request was sent again.
    prompt_tokens, completion_tokens : int
        Of the answers that were new in this run.
    """

    requests: int = 0
    from_cache: int = 0
    failed: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


# Log-perplexities of texts as data.


@dataclass(frozen=True, kw_only=True, eq=False)
class LogPerplexities:
    """Log-perplexity of each text, in nats per token.

    Parameters
    ----------
    values : float64 array of shape (n,)
        NaN for a text of which no token is predicted, such as an empty one.
    tokens : int64 array of shape (n,)
        Tokens predicted.
    parts : int64 array of shape (n,)
        Windows or chunks in which the text was read; more than 1 where it is longer than one.
    prefix_cut : int64 array of shape (n,), optional
        Of conditional ones: tokens at the end of the prefix that were not read for want of room.
    """

    values: npt.NDArray[np.float64] = field(repr=False)
    tokens: npt.NDArray[np.int64] = field(repr=False)
    parts: npt.NDArray[np.int64] = field(repr=False)
    prefix_cut: npt.NDArray[np.int64] | None = field(repr=False, default=None)

    @property
    def n_undefined(self) -> int:
        """Texts without a value."""
        return int(np.count_nonzero(self.tokens == 0))

    @property
    def n_cut(self) -> int:
        """Texts longer than one window."""
        return int(np.count_nonzero(self.parts > 1))

    @property
    def n_prefix_cut(self) -> int:
        """Texts whose prefix was not read to its end."""
        return 0 if self.prefix_cut is None else int(np.count_nonzero(self.prefix_cut))
