"""Reading the bodies that OpenAI-compatible servers answer with, distrustfully."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from rag_sourcebias.llm.labels import Alternatives, label_scores_from_tokens
from rag_sourcebias.types.completions import Completion, CompletionError, LabelScores

__all__ = [
    "chat_labels",
    "chat_text",
    "echoed",
    "joined",
    "parsed",
    "plain_labels",
    "plain_text",
]

Json = Any


def parsed(text: str) -> Json:
    """Return the object that a body holds.

    Raises
    ------
    CompletionError
        If it is not JSON (a proxy's page, a body cut short), or an error that came as a success.
    """
    try:
        body = json.loads(text)
    except ValueError:
        raise _malformed(f"not JSON: {text!r:.80}") from None
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        raise _malformed(f"no choices in {text!r:.120}")
    if not body["choices"] or not isinstance(body["choices"][0], dict):
        raise _malformed("an empty list of choices")
    return body


def chat_text(body: Json) -> Completion:
    """Read the text of a chat completion; a missing content is an empty text."""
    choice = body["choices"][0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _malformed("a choice without a message")
    finish = str(choice.get("finish_reason") or "stop")
    text, refusal = message.get("content"), message.get("refusal")
    if refusal:
        text, finish = refusal, "refusal"
    if text is not None and not isinstance(text, str):
        raise _malformed(f"content {text!r:.60}")
    values = tuple(value for _, value, _ in _chat_tokens(choice))
    return Completion(
        text=text or "", finish_reason=finish, logprobs=values or None, **_usage(body)
    )


def plain_text(body: Json) -> Completion:
    """Read the text of a plain completion."""
    choice = body["choices"][0]
    if not isinstance(choice.get("text"), str):
        raise _malformed("a choice without text")
    finish = str(choice.get("finish_reason") or "stop")
    return Completion(text=choice["text"], finish_reason=finish, **_usage(body))


def chat_labels(body: Json, labels: Sequence[str]) -> LabelScores:
    """Read label scores from the top alternatives of a chat completion."""
    choice = body["choices"][0]
    if choice.get("finish_reason") == "content_filter":
        raise CompletionError("the server filtered the answer", reason="rejected")
    if not isinstance(choice.get("logprobs"), dict):
        raise _no_logprobs()
    tokens = _chat_tokens(choice)
    return _from_tokens(body, labels, [t for t, _, _ in tokens], [a for _, _, a in tokens])


def plain_labels(body: Json, labels: Sequence[str]) -> LabelScores:
    """Read label scores from the top alternatives of a plain completion."""
    found = body["choices"][0].get("logprobs")
    if not isinstance(found, dict) or not found.get("tokens") or not found.get("top_logprobs"):
        raise _no_logprobs()
    alternatives: list[Alternatives] = []
    for options in found["top_logprobs"]:
        if not isinstance(options, dict):
            raise _malformed(f"top_logprobs {options!r:.60}")
        alternatives.append([(str(token), _number(value)) for token, value in options.items()])
    return _from_tokens(body, labels, [str(t) for t in found["tokens"]], alternatives)


def echoed(body: Json, prompt: str, label: str) -> LabelScores:
    """Read the log-probability of the echoed label; the answer holds one more token, the likeliest.

    A token that spans the end of the prompt and the beginning of the label counts as part of the
    label.

    Raises
    ------
    CompletionError
        If the echo is missing, or the token written behind the label is not the likeliest of its
        position. Some servers report each echoed token's log-probability *after* that token
        instead of before it; numbers of that kind look right and mean nothing.
    """
    choice = body["choices"][0]
    tokens, values, offsets, tops = _echo_columns(choice)
    start, stop = len(prompt), len(prompt) + len(label)
    ends = [*offsets[1:], offsets[-1] + len(tokens[-1])]
    inside = [i for i, begin in enumerate(offsets) if begin < stop and ends[i] > start]
    if not "".join(tokens[i] for i in inside).endswith(label.strip()):
        raise _malformed("no echo of the label; a server that ignores echo needs scoring='top'")
    written = [i for i, begin in enumerate(offsets) if begin >= stop]
    if written:
        options = tops[written[0]]
        likeliest = isinstance(options, dict) and bool(options)
        likeliest = likeliest and values[written[0]] >= max(map(_number, options.values())) - 1e-3
    else:  # a model that ends right behind the label writes nothing
        likeliest = choice.get("finish_reason") == "stop"
    if not likeliest:
        raise CompletionError(
            "the server's echoed log-probabilities belong to other positions (the token it wrote "
            "is not the one it calls likeliest): use scoring='top'",
            reason="rejected",
            fatal=True,
        )
    return LabelScores(logprobs=(math.fsum(values[i] for i in inside),), **_usage(body))


def _echo_columns(choice: Json) -> tuple[list[str], list[float], list[int], list[Json]]:
    found = choice.get("logprobs")
    if not isinstance(found, dict):
        raise _no_logprobs()
    names = ("tokens", "token_logprobs", "text_offset", "top_logprobs")
    columns: list[list[Json]] = [found.get(name) or [] for name in names]
    if not columns[0] or len({len(column) for column in columns}) != 1:
        raise _malformed("echoed " + ", ".join(names) + " that do not match")
    try:
        offsets = [int(offset) - int(columns[2][0]) for offset in columns[2]]
    except (TypeError, ValueError):
        raise _malformed(f"text_offset {columns[2]!r:.60}") from None
    return [str(t) for t in columns[0]], [_number(v) for v in columns[1]], offsets, columns[3]


def joined(parts: Sequence[LabelScores]) -> LabelScores:
    """Put the scores of single labels together."""
    return LabelScores(
        logprobs=tuple(part.logprobs[0] for part in parts),
        prompt_tokens=sum(part.prompt_tokens for part in parts),
        completion_tokens=sum(part.completion_tokens for part in parts),
    )


def _from_tokens(
    body: Json, labels: Sequence[str], written: list[str], alternatives: list[Alternatives]
) -> LabelScores:
    found = label_scores_from_tokens(labels, written, alternatives)
    if found is None:
        # Every label is at most as likely as the least likely alternative: nothing is known of
        # how they compare. -inf for all says so, and the judge reads it as no answer.
        return LabelScores(
            logprobs=(-math.inf,) * len(labels), n_bounded=len(labels), **_usage(body)
        )
    return LabelScores(logprobs=found[0], n_bounded=found[1], **_usage(body))


def _chat_tokens(choice: Json) -> list[tuple[str, float, Alternatives]]:
    found = choice.get("logprobs")
    content = found.get("content") if isinstance(found, dict) else None
    rows: list[tuple[str, float, Alternatives]] = []
    for row in content or []:
        try:
            options = [(str(o["token"]), _number(o["logprob"])) for o in row["top_logprobs"] or []]
            token, value = str(row["token"]), _number(row["logprob"])
            rows.append((token, value, options or [(token, value)]))
        except (KeyError, TypeError):
            raise _malformed(f"logprobs {row!r:.80}") from None
    return rows


def _number(value: Json) -> float:
    """Return a log-probability; NaN for what is not one (null, text, a positive number)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return min(float(value), 0.0) if value < 1e-3 else math.nan


def _usage(body: Json) -> dict[str, Any]:
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return {
        name: counts[name] if isinstance(counts.get(name), int) else 0
        for name in ("prompt_tokens", "completion_tokens")
    }


def _malformed(what: str) -> CompletionError:
    return CompletionError(f"the server's answer is malformed: {what}", reason="malformed")


def _no_logprobs() -> CompletionError:
    return CompletionError(
        "the server answered without log-probabilities: use mode votes or verbalised",
        reason="rejected",
        fatal=True,
    )
