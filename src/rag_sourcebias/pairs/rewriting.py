"""Rewrite a corpus with a language model: ask, clean the answers, write the folder, estimate."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rag_sourcebias.core.codec import PathLike, jsonl_text, write_atomic
from rag_sourcebias.core.completions import Completion, CompletionError, Request
from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError, require_at_least
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.intake.files import read_jsonl, read_lines
from rag_sourcebias.llm.ask import Answer, Asker, CompletionCache, Prices, RetryPolicy, request_key
from rag_sourcebias.pairs.rewrites import (
    MANIFEST,
    REWRITE,
    HumanInput,
    HumanRow,
    HumanTexts,
    Job,
    PairedManifest,
    RewriteEstimate,
    RewritePrompt,
    RewriteReport,
    RewriteSource,
    Untagged,
    human_rows,
    merged,
    planned_jobs,
    read_human_rows,
    row_digest,
    write_manifest,
)
from rag_sourcebias.pairs.writing import make_folders, write_judged

# From what a model wrote to the rewrite in it.
# Chat models put a sentence before the text, quotes or a fence around it, or a remark after it;
# [K] strips these. The rules are narrow on purpose: a rule that also fits the original text is not
# applied, so that a text which really begins with "Here is a summary:" keeps its opening.


_OBJECT = (
    r"(?:re-?writ\w*|re-?phras\w*|paraphras\w*|re-?word\w*|re-?stat\w*|revis\w*|simplif\w*|"
    r"condens\w*|summar\w*|version|text|passage|attempt|alternative)"
)
_COURTESY = r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|no problem|gladly)"
_LABEL = (
    r"(?:(?:re-?written|re-?phrased|paraphrased|re-?worded|revised|simplified|condensed|"
    r"summarized|summarised|restated)(?: (?:text|version|passage))?|rewrite|paraphrase|summary)"
)
_WITHIN = r"[^\n:.!?]"  # an opening is one sentence
_PREAMBLE = re.compile(
    r"[*_#>\s]*+(?:"
    rf"(?:{_COURTESY}\s*+[,!.—–-]*+\s*+)?(?:here(?:'s|’s| is| are)|below is|i(?:'|’)ve|i have)\b"
    rf"{_WITHIN}{{0,160}}?\b{_OBJECT}\b{_WITHIN}{{0,160}}:|"
    rf"{_LABEL}[*_]*:|"
    rf"{_COURTESY}[.!]|"
    rf"{_COURTESY}, i(?:(?:'|’)(?:d|ll)| would| can| will)\b{_WITHIN}{{0,80}}[.!:]"
    r")[*_]*(?:\s+|$)",
    re.IGNORECASE,
)
# A blank line, looked for once per run of white space: models in a loop write thousands of breaks.
_BLANK_LINE = r"(?<=\S)[^\S\n]*+\n[^\S\n]*+\n\s*+[*_#(]*+\s*+"
_POSTAMBLE = re.compile(
    rf"{_BLANK_LINE}(?:let me know\b|i hope (?:this|that|it)\b|hope this\b|feel free to\b|"
    r"(?:please )?note(?: that)?:? (?:i|the|this)\b[^\n]*\brewr|is there anything else\b|"
    r"would you like\b)[^\n]*+\s*+$",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    rf"{_BLANK_LINE}(?:(?:key |main |the |here are the )?(?:following )?changes(?: (?:i )?made)?\b"
    r"[^\n]{0,40}:|in this (?:rewritten|revised|rephrased|new) (?:version|text|passage)\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_MY_CHANGES = re.compile(
    rf"{_BLANK_LINE}i(?:(?:'|’)ve| have)? (?:also )?(?:made|changed|replaced|rephrased|reworded|"
    r"rewrote|rewritten|kept|removed|simplified)\b[^\n.]*?\b(?:changes?|edits?|text|passage|"
    r"original|version|words?|wording|meaning|facts|grammar|clarity|tone)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_FIRST_PERSON = re.compile(r"\bI\b")
_FENCE = re.compile(r"(?P<before>[^`]*)```[\w-]*\n(?P<inner>.*?)\n?```(?P<after>[^`]*)", re.DOTALL)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“"}
_REFUSAL = re.compile(
    r"[*_\s]*+(?:(?:i(?:'|’)?m|i am|we(?:'|’)?re|we are)?\s*(?:very |so )?(?:sorry|afraid)\b"
    r"[^.\n]{0,40}?\b(?:i|we) (?:can(?:no|'|’)t|can not|am (?:not able|unable)|won(?:'|’)t)|"
    r"i (?:can(?:no|'|’)t|can not|won(?:'|’)t|will not|am (?:unable|not able) to|must decline)"
    r"[^.\n]{0,30}\b(?:help|assist|rewrite|rephrase|paraphrase|fulfil+|comply|provide|process|"
    r"generate|create|access|complete)|"
    r"(?:unfortunately,? )?i(?:'|’)m (?:unable|not able) to\b|"
    r"as an? (?:ai|artificial intelligence|language model)\b|"
    r"(?:i apologi[sz]e|sorry|my apologies),? but\b|"
    r"(?:please|could you(?: please)?) (?:provide|share|paste|give)(?: me)?(?: with)? "
    r"(?:the|a|some|your) (?:text|passage))",
    re.IGNORECASE,
)


class Cleaned(NamedTuple):
    """The rewrite in an answer.

    Parameters
    ----------
    text : str
    problem : str or None
        ``"empty"``, ``"refusal"``, ``"truncated"`` or ``"filtered"``: there is no rewrite to use.
    steps : tuple of str
        What was stripped: ``"thought"``, ``"fence"``, ``"preamble"``, ``"postamble"``,
        ``"quotes"``.
    """

    text: str
    problem: str | None
    steps: tuple[str, ...]


def clean_rewrite(raw: str, *, original: str, finish_reason: str = "stop") -> Cleaned:
    r"""Find the rewrite in what a model wrote.

    Parameters
    ----------
    raw : str
    original : str
        The text that was to be rewritten; what it has itself is not stripped and no refusal.
    finish_reason : str
        Why the model stopped; ``"length"`` means that the end is missing.

    Examples
    --------
    >>> clean_rewrite("Sure, here's a possible rewrite of the text:\n\nWater is wet.",
    ...               original="Wet is what water is.")
    Cleaned(text='Water is wet.', problem=None, steps=('preamble',))
    """
    text, steps = _stripped(raw.strip(), original.strip())
    refuses = any(_REFUSAL.match(said) for said in (raw.strip(), text))
    problem = None
    if finish_reason == "content_filter":
        problem = "filtered"
    elif finish_reason == "refusal" or (refuses and not _REFUSAL.match(original.strip())):
        problem = "refusal"
    elif finish_reason == "length" or _OPEN_THOUGHT.match(text):
        problem = "truncated"
    elif not text:
        problem = "empty"
    return Cleaned(text, problem, tuple(steps))


def _stripped(text: str, original: str) -> tuple[str, dict[str, None]]:
    steps: dict[str, None] = {}

    def take(step: str, found: str) -> None:
        nonlocal text
        text = found
        steps[step] = None

    thought = _THOUGHT.match(text)  # a model thinks first
    if thought:
        take("thought", text[thought.end() :].strip())
    fence = _FENCE.fullmatch(text) if "```" in text and "```" not in original else None
    # Prose around a fence is the model's, unless it is longer than what is inside.
    if fence and len(fence["before"] + fence["after"]) <= max(len(fence["inner"]), 200):
        take("fence", fence["inner"].strip())
    for _ in range(2):  # "Sure! Here is the rewritten text:" may be two sentences
        opening = _PREAMBLE.match(text)
        if opening and not _PREAMBLE.match(original):
            take("preamble", text[opening.end() :].strip())
    if "\n" in text:
        for remark in (_CHANGES, _MY_CHANGES, _POSTAMBLE):
            # Where the author says "I", an "I" in the answer may be the author's.
            own = _FIRST_PERSON if remark is _MY_CHANGES else remark
            if remark.search(text) and not own.search(original):
                take("postamble", remark.sub("", text).strip())
    closing, inner = _QUOTES.get(text[:1]), text[1:-1]
    quoted = closing is not None and len(text) > 2 and text.endswith(closing)
    # "A" and "B": the first and the last mark do not belong together.
    if quoted and not {text[0], closing} & set(inner) and original[:1] not in _QUOTES:
        take("quotes", inner.strip())
    return text, steps


# Queries and judgments of a folder of rewrites: copied, never shown to a model.


_ENDINGS = (".tsv", ".tsv.gz", ".txt", ".txt.gz")


def copy_relevance(source: HumanInput, folder: Path, *, kept: set[str] | None) -> None:
    """Copy ``queries.jsonl`` and ``qrels/`` of a folder, byte for byte, or write a data set's.

    Parameters
    ----------
    source : Dataset, Corpus or path
        Where there is neither (a corpus never has them) nothing is written.
    folder : Path
    kept : set of str, optional
        Documents that were taken, where not all were: then only judgments of these and their
        queries are copied, each line as it is but for its end.
    """
    if isinstance(source, Corpus):
        return
    if isinstance(source, Dataset):
        _write_dataset(source, folder, kept)
        return
    root = Path(source)
    splits = [p for p in sorted(root.glob("qrels/*")) if p.name.endswith(_ENDINGS)]
    queries = [p for p in (root / "queries.jsonl", root / "queries.jsonl.gz") if p.is_file()]
    if not splits and not queries:
        return
    if not splits or not queries:
        missing = "queries.jsonl" if splits else "qrels/<split>.tsv"
        raise DataError(f"{root} has no {missing}; give both or neither")
    make_folders(folder, "qrels")
    if kept is None:
        for file in (*splits, queries[0]):
            write_atomic(folder / file.relative_to(root), file.read_bytes())
        return
    judged: set[str] = set()
    for file in splits:
        lines = list(_judged_lines(file, kept, judged))
        write_atomic(folder / file.relative_to(root), lines)
    rows = zip(read_jsonl(queries[0]), read_lines(queries[0]), strict=True)
    asked = [line + "\n" for (_, row), (_, line) in rows if str(row.get("_id")) in judged]
    write_atomic(folder / queries[0].relative_to(root), asked)


def _judged_lines(file: Path, documents: set[str], judged: set[str]) -> Iterator[str]:
    """Yield the header and the judgments of these documents; ``judged`` collects their queries."""
    for number, line in read_lines(file):
        fields = line.split()
        # BEIR has three columns under a header, TREC four: the document is before the grade.
        if len(fields) >= 3 and fields[-2] in documents:
            judged.add(fields[0])
            yield line + "\n"
        elif number == 1 and fields[0].lower() in ("query-id", "query_id", "qid"):
            yield line + "\n"


def _write_dataset(dataset: Dataset, folder: Path, kept: set[str] | None) -> None:
    tags, qrels = dataset.corpus.tags, dataset.qrels
    rows: list[tuple[str, str, int]] = []
    for query, doc, grade in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True):
        doc_id = qrels.doc_ids[doc]
        tag = tags.get(doc_id)
        name = tag.pair_id or doc_id
        if tag.source in (None, "human") and (kept is None or name in kept):
            rows.append((qrels.query_ids[query], name, int(grade)))
    judged = {query_id for query_id, _, _ in rows}
    queries = [query for query in dataset.queries if kept is None or query.query_id in judged]
    make_folders(folder, "qrels")
    write_judged(folder, queries, rows, split="test")


# Rewriting by one model with one prompt: ask for everything, then write it in order.
# The only state of a run is the cache of answers, in which an answer lies a moment after it came.
# Files are written from it when nothing is left to ask, in the order of the documents: so a killed
# run loses nothing it paid for, and what a resumed run writes is what an uninterrupted one writes.


_BLOCK = 256  # documents looked up in the cache together


def rewrite_source(
    job: Job,
    asker: Asker,
    cache: CompletionCache,
    *,
    prices: Prices | None,
    on_ended: Callable[[], None],
) -> RewriteSource:
    """Ask for what is missing, write the files and return the finished entry of the manifest.

    Raises
    ------
    CompletionError
        If the run had to stop before anything was answered.
    """
    errors: dict[int, CompletionError] = {}  # only failures are kept in memory
    requests = filter(None, map(job.request, read_human_rows(job.human_file)))
    for outcome in asker.ask(requests):
        if outcome.error is not None:
            errors[outcome.index] = outcome.error
        on_ended()
    ends: dict[str, Counter[str]] = {"done": Counter(), "skipped": Counter(), "failed": Counter()}
    cleaned: Counter[str] = Counter()
    tokens: dict[str, Any] = {"prompt_tokens": 0, "completion_tokens": 0}
    write_atomic(job.raw_file, jsonl_text(_records(job, cache, errors)))
    for _, record in read_jsonl(job.raw_file):
        ends[record["status"]][record["reason"]] += 1
        if record["status"] == "done":
            cleaned.update(record["cleaned"])
        for name in tokens:
            tokens[name] += record.get(name, 0)
    done = ends["done"].total()
    if done:
        style = {} if job.prompt.style is None else {"metadata": {"style": job.prompt.style}}
        rows = zip(read_human_rows(job.human_file), read_jsonl(job.raw_file), strict=True)
        write_atomic(
            job.corpus_file,
            jsonl_text(
                {"_id": row.doc_id, "title": row.title, "text": record["text"], **style}
                for row, (_, record) in rows
                if record["status"] == "done"
            ),
        )
    else:  # an empty corpus file cannot be read
        job.corpus_file.unlink(missing_ok=True)
    return replace(
        job.source,
        finished=True,
        done=done,
        skipped=dict(sorted(ends["skipped"].items())),
        failed=dict(sorted(ends["failed"].items())),
        cleaned=dict(sorted(cleaned.items())),
        cost=None if prices is None else prices.cost(**tokens),
        currency="" if prices is None else prices.currency,
        **tokens,
    )


def answered_rows(
    rows: Iterator[HumanRow], job: Job, cache: CompletionCache
) -> Iterator[tuple[HumanRow, Request | None, Answer | None]]:
    """Give each document with its request and the answer to it, where the cache has one."""
    while block := list(islice(rows, _BLOCK)):
        requests = [job.request(row) for row in block]
        keys = [None if r is None else request_key(job.source.fingerprint, r) for r in requests]
        known = cache.get(list(dict.fromkeys(key for key in keys if key is not None)))
        for row, request, key in zip(block, requests, keys, strict=True):
            yield row, request, None if key is None else known.get(key)


def _records(
    job: Job, cache: CompletionCache, errors: dict[int, CompletionError]
) -> Iterator[dict[str, Any]]:
    asked = -1
    for row, request, answer in answered_rows(read_human_rows(job.human_file), job, cache):
        record: dict[str, Any] = {"_id": row.doc_id}
        if request is None:
            yield record | {"status": "skipped", "reason": "no text"}
            continue
        asked += 1
        if not isinstance(answer, Completion):
            error = errors.get(asked) or CompletionError("", reason="not_asked")
            yield record | {"status": "failed", "reason": error.reason, "error": str(error)}
            continue
        # Half a surrogate pair, which a server may send, cannot be written as UTF-8.
        raw = answer.text.encode("utf-8", "replace").decode()
        found = clean_rewrite(raw, original=row.text, finish_reason=answer.finish_reason)
        problem = "not unicode" if raw != answer.text else found.problem
        yield record | {
            "status": "skipped" if problem else "done",
            "reason": problem,
            "finish_reason": answer.finish_reason,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "cleaned": list(found.steps),
            "text": None if problem else found.text,
            "raw": raw,
        }


# From a corpus by people to a paired corpus: each document beside its rewrites.


ANSWERS = "answers.sqlite"
"""Where answers are kept, in the folder."""


def build_paired_corpus(
    source: HumanInput,
    completer: Completer,
    output: PathLike,
    *,
    prompts: Sequence[RewritePrompt | str] = (REWRITE,),
    model: str | None = None,
    max_tokens: int = 1024,
    temperature: float = 0.0,
    seed: int = 0,
    retry: RetryPolicy | None = None,
    limit: int | None = None,
    untagged: Untagged = "error",
    prices: Prices | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RewriteReport:
    """Have every human document rewritten and write a folder that an audit can read.

    The model sees the prompt and the text of one document: neither title nor query. The folder
    holds ``corpus/human.jsonl`` and one ``corpus/<model>.jsonl`` per prompt (ids and titles
    copied), ``queries.jsonl`` and ``qrels/`` (copied), ``raw/`` (one record per document and
    prompt: how it ended, and all that the model wrote) and ``manifest.json``. Read it with
    :func:`rag_sourcebias.read_beir`. A document without a rewrite stays in
    ``corpus/human.jsonl``; ``RewriteReport.complete`` tells whether there is any.

    A run may be killed at any moment and called again with the same arguments: answers that came
    are not asked again, and the files are those of an uninterrupted run, byte for byte, if the
    model's answers are. Documents that failed are asked again; finished ones are left alone. Other
    prompts or another model may be added to a folder by a later call. Two runs must not write to
    one folder at the same time.

    Parameters
    ----------
    source : Dataset, Corpus or path
        Only documents of source ``"human"`` are taken. A path is a BEIR folder, which is streamed:
        memory does not grow with its size. A corpus, or a folder without queries and judgments,
        gives a folder that lacks them.
    completer : Completer
    output : path
        Made if missing.
    prompts : sequence of RewritePrompt or str
        A string is a template with ``{text}``. The default is the prompt of [K].
    model : str, optional
        Name in the source tags ``llm:<model>`` (of ``REWRITE``) and ``llm:<model>+<prompt>``; the
        completer's by default, without ``local:``.
    max_tokens : int
        Of one rewrite. One that reaches it lacks its end and is skipped as ``"truncated"``.
    temperature : float
        0, the most likely answer, by default; [W] used 0.5.
    seed : int
    retry : RetryPolicy, optional
    limit : int, optional
        Take the first documents only, with the judgments of these and their queries.
    untagged : {"error", "human"}
    prices : Prices, optional
    on_progress : callable, optional
        Told how many of how many rewrites have ended.

    Raises
    ------
    DataError
        If an argument is out of range, the source is malformed or has no human documents, or the
        folder was made from other documents, with other settings or by something else.
    CompletionError
        If the run had to stop before anything was answered (a wrong key, no server).
    """
    require_at_least(1, limit=limit)
    folder = _checked_output(Path(output), source)
    jobs = planned_jobs(
        folder,
        completer,
        prompts,
        model=model,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
    )
    human = _described(source, limit, untagged)
    manifest, begun = merged(folder, human, tuple(job.source for job in jobs))
    _prepare(source, folder, manifest, untagged=untagged)
    answers = CompletionCache(folder / ANSWERS)
    asker = Asker(completer, cache=answers, retry=retry)
    ended = 0

    def progress(now: int) -> None:
        nonlocal ended
        if now > ended and on_progress is not None:
            on_progress(now, human.n_documents * len(jobs))
        ended = now

    for position, (entry, planned) in enumerate(zip(begun, jobs, strict=True), start=1):
        job = replace(planned, source=entry)
        if not job.ready:
            done = rewrite_source(
                job, asker, answers, prices=prices, on_ended=lambda: progress(ended + 1)
            )
            manifest = replace(
                manifest,
                sources=tuple(done if s.source == done.source else s for s in manifest.sources),
            )
            write_manifest(folder, manifest)
        progress(human.n_documents * position)  # documents without text were not asked about
    usage = asker.usage
    paid = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return RewriteReport(
        folder=str(folder),
        manifest=manifest,
        requests=usage.requests,
        from_cache=usage.from_cache,
        retries=usage.retries,
        cost=None if prices is None else prices.cost(**paid),
        **paid,
    )


def _checked_output(folder: Path, source: HumanInput) -> Path:
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; expected a folder to write to")
    if not isinstance(source, Dataset | Corpus) and Path(source).resolve() == folder.resolve():
        raise DataError(f"{folder} holds the documents themselves; write to another folder")
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    # What a killed run leaves before it writes the manifest is not strange.
    strange = [
        path.name
        for path in there
        if (any(path.iterdir()) if path.is_dir() else not path.name.startswith((".", ANSWERS)))
    ]
    if strange and not (folder / MANIFEST).exists():
        raise DataError(
            f"{folder} holds {', '.join(strange[:3])} but no {MANIFEST}: it was not made by this "
            "builder and would be overwritten; write to another folder"
        )
    return folder


def _described(source: HumanInput, limit: int | None, untagged: Untagged) -> HumanTexts:
    n, digest = row_digest(human_rows(source, limit=limit, untagged=untagged))
    told = {}
    if isinstance(source, Dataset):
        name, told = source.name, {"license": source.license, "attribution": source.attribution}
    else:
        name = "corpus" if isinstance(source, Corpus) else Path(source).resolve().name
    return HumanTexts(name=name, n_documents=n, digest=digest, limit=limit, **told)


def _prepare(
    source: HumanInput, folder: Path, manifest: PairedManifest, *, untagged: Untagged
) -> None:
    """Make the folders, remove what a killed run was writing, and write what needs no model."""
    make_folders(folder, "corpus", "raw")
    for leftover in (*folder.glob(".*.tmp"), *folder.glob("*/.*.tmp")):
        leftover.unlink(missing_ok=True)
    write_manifest(folder, manifest)  # first: it tells whose files the others are
    limit = manifest.human.limit
    human_file = folder / "corpus" / "human.jsonl"
    write_atomic(
        human_file,
        jsonl_text(row.to_dict() for row in human_rows(source, limit=limit, untagged=untagged)),
    )
    kept = None if limit is None else {row.doc_id for row in read_human_rows(human_file)}
    copy_relevance(source, folder, kept=kept)


# What rewriting will cost, before anything is asked.


_CHARS_PER_TOKEN = 4.0  # of English; other languages have fewer


def estimate_paired_corpus(
    source: HumanInput,
    completer: Completer,
    output: PathLike,
    *,
    prompts: Sequence[RewritePrompt | str] = (REWRITE,),
    limit: int | None = None,
    untagged: Untagged = "error",
    prices: Prices | None = None,
    **writing: Any,  # noqa: ANN401 - of the builder
) -> RewriteEstimate:
    """Count the requests of :func:`build_paired_corpus`; nothing is asked and nothing written.

    Parameters are those of the builder. Answers that the folder already holds cost nothing.
    Documents with equal texts are counted each, though only one is paid for.

    Raises
    ------
    DataError
        As the builder does, but for a folder that it would not write to: the estimate says why.
    """
    require_at_least(1, limit=limit)
    folder = Path(output)
    jobs = planned_jobs(folder, completer, prompts, **writing)
    cache = CompletionCache(folder / ANSWERS)
    n = requests = cached = prompt_chars = text_chars = most = 0
    for job in jobs:
        n = 0
        rows = human_rows(source, limit=limit, untagged=untagged)
        for row, request, answer in answered_rows(rows, job, cache):
            n += 1
            if request is None:
                continue
            requests += 1
            if answer is not None:
                cached += 1
                continue
            prompt_chars += len(request.prompt)
            most += request.max_tokens
            text_chars += min(len(row.text), round(request.max_tokens * _CHARS_PER_TOKEN))
    read = round(prompt_chars / _CHARS_PER_TOKEN)
    written = round(text_chars / _CHARS_PER_TOKEN)
    cost, most_cost = None, None
    if prices is not None:
        cost = prices.cost(prompt_tokens=read, completion_tokens=written)
        most_cost = prices.cost(prompt_tokens=read, completion_tokens=most)
    refused = ""
    try:
        _checked_output(folder, source)
        if (folder / MANIFEST).exists():
            described = _described(source, limit, untagged)
            merged(folder, described, tuple(job.source for job in jobs))
    except (DataError, UnsupportedVersionError) as error:
        refused = str(error)
    return RewriteEstimate(
        n_documents=n,
        requests=requests,
        cached=cached,
        prompt_tokens=read,
        completion_tokens=written,
        most_completion_tokens=most,
        cost=cost,
        most_cost=most_cost,
        currency="" if prices is None else prices.currency,
        refused=refused,
    )
