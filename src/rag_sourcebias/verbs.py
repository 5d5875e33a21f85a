"""The two verbs that take whatever a user has: ``audit`` and ``interval``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError, meant
from rag_sourcebias.core.progress import Stages
from rag_sourcebias.core.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.intake.documents import read_questions
from rag_sourcebias.intake.given import data_of, said
from rag_sourcebias.intake.judged import items_of_arrays, read_judged_items
from rag_sourcebias.intake.objects import a, is_frame, is_path, names_in
from rag_sourcebias.intake.rankings import is_results, read_systems, runs_of
from rag_sourcebias.intake.samples import list_datasets
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.data import (
    JudgedConfig,
)
from rag_sourcebias.judged.page import JudgedReport
from rag_sourcebias.neural.named import SpecBuilder
from rag_sourcebias.observe.tags import corpus_of
from rag_sourcebias.report.render import without_texts
from rag_sourcebias.retrieval.application import (
    ApplicationSpec,
    FinishedRun,
    application_spec,
    require_askable,
)
from rag_sourcebias.retrieval.rerank import candidates, installed
from rag_sourcebias.retrieval.search import DEFAULT_RETRIEVER, DenseSpec, named_retriever
from rag_sourcebias.source.audit import audit_source, measure_source_bias
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport
from rag_sourcebias.source.shown import ShownReport, audit_shown

C = TypeVar("C", AuditConfig, JudgedConfig)

# Settings given as keywords: those of a configuration, checked by name.


def _config(kind: type[C], given: C | None, settings: dict[str, Any]) -> C:
    """Return a configuration with the settings given, each in the form that people write."""
    known: list[str] = [field.name for field in fields(kind)]
    if "rng" in settings:
        rng = settings.pop("rng")
        drawn = rng.integers(2**31) if isinstance(rng, np.random.Generator) else rng
        settings["seed"] = int(drawn)
    for name in settings:
        if name not in known:
            verb: Callable[..., Any] = audit if kind is AuditConfig else interval
            every = dict.fromkeys([*known, *inspect.signature(verb).parameters])
            near = meant(name, every)
            raise DataError(f"there is no setting {name!r}; there are {', '.join(every)}{near}")
    if given is not None:
        if settings:
            raise DataError(f"{', '.join(settings)}: set in config= or beside it, not both")
        return given
    for name in ("cutoffs", "measures", "browsing"):
        if name in settings:
            value = settings[name]
            settings[name] = (value,) if isinstance(value, str | int) else tuple(value)
    try:
        return kind(**settings)
    except TypeError as error:
        raise DataError(f"settings {settings}: {error}") from error


# What was given as a retriever.


def _specs(value: Any, builder: SpecBuilder) -> list[RetrieverSpec]:  # noqa: ANN401
    """Return a recipe for each retriever or finished result."""
    if value is None:
        value = DEFAULT_RETRIEVER
    if is_results(value):
        return _finished(value)
    if isinstance(value, Mapping):
        named: list[tuple[str | None, Any]] = [(str(name), one) for name, one in value.items()]
    elif isinstance(value, list | tuple):
        if value and all(is_path(one) and is_results(one) for one in value):
            return [FinishedRun(run) for run in read_systems(value)]
        unnamed = sum(isinstance(one, Mapping) for one in value) > 1
        named = [
            (f"results {i}" if unnamed and isinstance(one, Mapping) else None, one)
            for i, one in enumerate(value, 1)
        ]
    else:
        return [_spec(value, None, builder)]
    if not named:
        raise DataError(f"retriever: {a(value)} that is empty; give one or more retrievers")
    return [
        spec
        for name, one in named
        for spec in (_finished(one, name) if is_results(one) else [_spec(one, name, builder)])
    ]


def _finished(value: Any, name: str | None = None) -> list[RetrieverSpec]:  # noqa: ANN401
    return [FinishedRun(run) for run in said(lambda: runs_of(value, name=name), "results")]


def _spec(value: Any, name: str | None, builder: SpecBuilder) -> RetrieverSpec:  # noqa: ANN401
    if isinstance(value, str):
        return _of_text(value, name, builder)
    if isinstance(value, os.PathLike):
        raise DataError(f"there is no file {str(value)!r}; finished results are a TREC run")
    if isinstance(value, Mapping):
        raise DataError(
            f"retriever: a dict with {next(iter(value), None)!r} is neither {{name: retriever}} "
            "nor {query: {document: score}}, with a number for each score"
        )
    require_askable(value)
    if next(candidates(value, installed()), None) is None or _is_ours(value):
        if isinstance(value, RetrieverSpec):
            return value
        if isinstance(value, Encoder):
            return DenseSpec(value, name=name)
    if not callable(value) and _is_ours(value) and isinstance(value, Retriever):
        return FinishedRun(value, name=name)
    try:
        return ApplicationSpec(value, name=name, id_key=builder.id_key)
    except DataError as error:
        raise DataError(
            f"retriever: {error}; or a name such as 'bm25' or 'dense:all-MiniLM-L6-v2', or "
            "finished results ({query: {document: score}}, a run, a frame)"
        ) from error


def _is_ours(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "rag_sourcebias"


def _of_text(text: str, name: str | None, builder: SpecBuilder) -> RetrieverSpec:
    if text.startswith("app:"):
        return application_spec(text, "retriever", name=name, id_key=builder.id_key)
    kind = text.partition(":")[0].strip().lower()
    if (" " in text.strip() and "," not in text) or not kind.isidentifier():
        raise DataError(
            f"retriever {text[:60]!r} is a text, not the name of a retriever; write 'bm25' or "
            "'dense:<model>', or pass the retriever itself"
        )
    lowered = kind + text.strip()[len(kind) :]  # BM25 is how people write it
    spec = named_retriever(lowered, builder)
    if name is not None:
        spec.name = name
    return spec


# The verbs.


@overload
def audit(
    retriever: Any = None,  # noqa: ANN401
    data: Any = None,  # noqa: ANN401
    *,
    store: None = None,
    **settings: Any,  # noqa: ANN401
) -> SkewReport: ...
@overload
def audit(
    retriever: Any,  # noqa: ANN401
    *,
    store: Any,  # noqa: ANN401
    questions: Any,  # noqa: ANN401
    **settings: Any,  # noqa: ANN401
) -> ShownReport: ...
def audit(
    retriever: Any = None,
    data: Any = None,
    *,
    store: Any = None,
    questions: Any = None,
    sheet: str | os.PathLike[str] | None = None,
    tags: Any = None,
    depth: int = 100,
    clusters: Mapping[str, str] | None = None,
    copies: Any = "words",
    split: str = "test",
    grade_scale: float = 1,
    id_key: str | None = None,
    config: AuditConfig | None = None,
    cache: str | os.PathLike[str] | None = None,
    texts: bool | None = None,
    on_stage: Callable[[str], None] | None = None,
    **settings: Any,
) -> SkewReport | ShownReport:
    """Measure whether a retriever favours a source, in one line.

    Parameters
    ----------
    retriever : optional
        ``"bm25"`` or ``"dense:<model>"``; a LangChain or LlamaIndex retriever, vector store, query
        engine or index; a Chroma collection; a function from a query to documents, best first;
        finished results (``{query: {document: score}}``, ``{query: [documents]}``, a frame, a TREC
        file, a :class:`Run`); a list of these, or a dict by name. Left out, as in ``audit(data)``:
        ``"bm25"``, as on the command line.
    data
        A BEIR folder, the name of a data set (``"sample"``), a :class:`Dataset`, a dict with
        ``corpus``, ``queries``, ``qrels`` and ``tags``, or a frame with one row per query and
        document.
    store : optional
        What the retriever searches, where there are no judgments: an address (``"chroma:db"``), a
        folder, a vector store or index, ``{id: text}``, a frame. Asked with ``questions``, it
        gives a :class:`~rag_sourcebias.source.shown.ShownReport`: which share of the store each
        source has, and which of the first documents (the greatest of ``cutoffs``).
    questions : optional
        With ``store``: a list of texts, or a file with one a line.
    sheet : path, optional
        With ``store``: folder for a sheet of questions and documents to judge.
    tags : optional
        Source of each document, where the data does not say: ``{id: "human"}``, a frame, a file.
    depth : int
        Documents per query.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each query.
    copies : {"words", "no"}, ``{id: group}``, frame or file
        Near-duplicates of one source, which count as one document: those that share most of their
        words, where there are texts; or the group of each document that has copies.
    split : str
        Of a folder.
    grade_scale : float
        Grades are multiplied by it: 2 where they are 0, .5 and 1.
    id_key : str, optional
        Key of the metadata with the id by which the data know a document. Left out, ids, keys and
        texts are tried.
    config : AuditConfig, optional
        All settings at once, in place of keywords.
    cache : path, optional
        Folder for vectors.
    texts : bool, optional
        Keep the texts of the few queries that matter most. Left out, the report holds those of
        bundled data sets, and of others ids and numbers.
    on_stage : callable, optional
        Told what begins. Left out, how far the work is and how long the rest takes is printed on
        standard error, every ten seconds.
    **settings
        Those of :class:`AuditConfig`: ``cutoffs``, ``margin``, ``primary``, ``seed``, …

    Returns
    -------
    SkewReport or ShownReport
        Shows itself in a notebook; ``print`` it, ``.verdict``, ``.table(name)``, ``.save()``.

    Raises
    ------
    DataError
        If something else was given; the message says what it was and what would work.

    Examples
    --------
    >>> import rag_sourcebias as rsb
    >>> tags = {f"{kind}{i}": kind for kind in ("human", "llm") for i in range(30)}
    >>> qrels = {f"q{i}": [f"human{i}", f"llm{i}"] for i in range(30)}
    >>> results = {f"q{i}": [f"llm{i}", f"human{i}"] for i in range(30)}
    >>> rsb.audit(results, {"qrels": qrels, "tags": tags}, cutoffs=[1, 3]).verdict
    'favours_other'
    """
    checked = _config(AuditConfig, config, dict(settings))
    builder = SpecBuilder(None if cache is None else Path(cache), lambda *_: None, id_key)
    if store is not None:
        return _audit_shown(
            said(lambda: _specs(retriever, builder), "retriever"),
            data,
            store=store,
            questions=questions,
            sheet=sheet,
            tags=tags,
            depth=depth,
            config=checked,
        )
    if questions is not None or sheet is not None:
        raise DataError("questions= and sheet= go with store=: what the retriever searches")
    retriever, data = _in_order(retriever, data)
    specs = said(lambda: _specs(retriever, builder), "retriever")
    given = said(lambda: data_of(data, tags=tags, split=split, grade_scale=grade_scale), "data")
    dataset = given.dataset
    runs = [spec.run for spec in specs if isinstance(spec, FinishedRun) and spec.run is not None]
    if len(runs) == len(specs):
        report = measure_source_bias(
            runs,
            given.qrels,
            given.tags,
            config=checked,
            corpus=None if dataset is None else dataset.corpus,
            name=given.name,
            design="unknown" if dataset is None else dataset.design,
            clusters=clusters,
            copies=copies,
        )
    elif dataset is None:
        raise DataError(
            "data hold no " + ("queries" if given.texts else "texts") + " to retrieve with: add "
            "corpus ({id: text}) and queries ({id: text}), or pass finished results in place of a "
            "retriever"
        )
    else:
        ask = partial(
            audit_source,
            dataset,
            specs,
            config=checked,
            depth=depth,
            clusters=clusters,
            copies=copies,
        )
        report = ask(on_stage=on_stage) if on_stage else _with_progress(ask, specs)
    if texts is None:
        texts = _is_bundled(data)
    return report if texts else without_texts(report)


def _with_progress(ask: Callable[..., SkewReport], specs: Sequence[RetrieverSpec]) -> SkewReport:
    """Print how far the work is."""
    with Stages() as progress:
        parts: list[Any] = [*specs, *(getattr(spec, "encoder", None) for spec in specs)]
        for part in parts:
            if hasattr(part, "progress"):
                part.progress = progress.advance
        return ask(on_stage=progress.begin)


def _audit_shown(
    specs: Sequence[RetrieverSpec],
    data: Any,  # noqa: ANN401
    *,
    store: Any,  # noqa: ANN401
    questions: Any,  # noqa: ANN401
    sheet: str | os.PathLike[str] | None,
    tags: Any,  # noqa: ANN401
    depth: int,
    config: AuditConfig,
) -> ShownReport:
    if data is not None:
        raise DataError("data have judgments, and store= is for where there are none; give one")
    if len(specs) > 1:
        raise DataError("store= is asked through one retriever; audit them one by one")
    corpus, name = said(lambda: corpus_of(store, tags=tags), "store")
    return audit_shown(
        specs[0],
        corpus,
        said(lambda: read_questions(questions or []), "questions"),
        store=name,
        cutoff=max(config.cutoffs),
        depth=depth,
        confidence_level=config.confidence_level,
        baseline_source=config.baseline_source,
        sheet=sheet,
        rng=config.seed,
    )


def _in_order(retriever: Any, data: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return retriever and data; refuse what stands in the place of the other."""
    if data is None:
        if retriever is None:
            raise DataError(
                "no data: write rsb.audit(retriever, data), rsb.audit(data), or try "
                "rsb.audit('bm25', 'sample')"
            )
        if _is_data(retriever):
            return None, retriever
        raise DataError(
            f"{a(retriever)} alone: data are missing; write rsb.audit(retriever, data), where data "
            "is a BEIR folder, the name of a data set such as 'sample', or a dict with corpus, "
            "queries, qrels and tags"
        )
    if _is_data(retriever) and not _is_data(data):
        raise DataError(
            f"the retriever comes first and the data second: {a(retriever)} is data and {a(data)} "
            "is not; write rsb.audit(retriever, data)"
        )
    return retriever, data


def _is_data(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, Dataset):
        return True
    if is_frame(value):
        return not {"source", "rsb_source"}.isdisjoint(names_in(value))
    if isinstance(value, tuple):
        return len(value) in (3, 4) and all(isinstance(part, Mapping) for part in value)
    if isinstance(value, Mapping):
        return any(name in value for name in ("qrels", "corpus", "queries"))
    if isinstance(value, str | os.PathLike):
        return _is_bundled(value) or (is_path(value) and Path(value).is_dir())
    return False


def _is_bundled(value: Any) -> bool:  # noqa: ANN401
    """Return whether it is the name of a data set that comes with the package."""
    if not isinstance(value, str):
        return False
    return value == "sample" or value in {entry.name for entry in list_datasets()}


def interval(
    data: Any = None,  # noqa: ANN401 - whatever a user has
    *,
    y: Any = None,  # noqa: ANN401
    yhat: Any = None,  # noqa: ANN401
    yhat_unlabeled: Any = None,  # noqa: ANN401
    human: str | Sequence[str] | None = None,
    judge: str | Sequence[str] | None = None,
    id: str | Sequence[str] | None = None,
    group: str | None = None,
    cluster: str | None = None,
    measure: str = "score",
    bounds: tuple[float, float] | None = None,
    config: JudgedConfig | None = None,
    **settings: Any,  # noqa: ANN401 - the fields of JudgedConfig
) -> JudgedReport:
    """Put an interval on what a judge said, from the labels that people gave to some items.

    Parameters
    ----------
    data : path, frame, dict of columns, list of dicts or JudgedItems, optional
        One row per item: a judge value for each, a human label for some. Columns are found by
        their usual names.
    y, yhat : array of shape (n,), optional
        In place of data: human labels, and judge values of the same items.
    yhat_unlabeled : array of shape (N,), optional
        Judge values of the items that nobody labelled.
    human, judge, id, group, cluster : str, optional
        Columns, several of people or judges too, as for :func:`~rag_sourcebias.read_judged_items`.
    measure : str
        Name of the value.
    bounds : tuple of float, optional
        Range of the human labels.
    config : JudgedConfig, optional
        All settings at once, in place of keywords.
    **settings
        Those of :class:`JudgedConfig`: ``method``, ``confidence_level``, ``seed``, …

    Returns
    -------
    JudgedReport

    Examples
    --------
    >>> import numpy as np, rag_sourcebias as rsb
    >>> rng = np.random.default_rng(1)
    >>> y = rng.random(60)
    >>> report = rsb.interval(y=y, yhat=y + 0.1, yhat_unlabeled=rng.random(500) + 0.1)
    >>> report.n_labeled
    60
    """
    checked = _config(JudgedConfig, config, dict(settings))
    columns = {"human": human, "judge": judge, "id": id, "group": group, "cluster": cluster}
    if y is not None or yhat is not None or yhat_unlabeled is not None:
        if data is not None:
            raise DataError("give data, or y with yhat and yhat_unlabeled, not both")
        items, name = items_of_arrays(y, yhat, yhat_unlabeled), "arrays"
    elif data is None:
        raise DataError(
            "no data: pass a file or a frame with a judge value per row and a human label in some, "
            "or y=, yhat= and yhat_unlabeled="
        )
    else:
        items, name = _items(data, columns)
    return judge_items_with_intervals(
        items, measure=measure, config=checked, name=name, bounds=bounds
    )


def _items(data: Any, columns: Mapping[str, Any]) -> tuple[JudgedItems, str]:  # noqa: ANN401
    if isinstance(data, JudgedItems):
        return data, "items"
    items = read_judged_items(data, **columns)
    return items, Path(data).name if isinstance(data, str | os.PathLike) else "data"


def _shown(verb: Callable[..., Any], kind: type) -> None:
    """Let editors and notebooks show the settings by name: the dataclass defines them."""
    signature = inspect.signature(verb)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    taken = {p.name for p in own}
    also = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=field.type,
        )
        for field in fields(cast("Any", kind))
        if field.name not in taken
    ]
    verb.__signature__ = signature.replace(parameters=[*own, *also])  # type: ignore[attr-defined]


_shown(audit, AuditConfig)
_shown(interval, JudgedConfig)
