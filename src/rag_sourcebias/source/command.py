"""``audit source`` and ``audit app``: options, work shard by shard, and the commands."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.data import Dataset, DocTags, TagTable
from rag_sourcebias.core.errors import DataError, setting
from rag_sourcebias.core.progress import Stages
from rag_sourcebias.core.protocols import Engine, RetrieverSpec
from rag_sourcebias.infer.verified import Verification, read_verification
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.documents import read_questions, read_tags
from rag_sourcebias.intake.judgments import read_qrels
from rag_sourcebias.intake.rankings import read_systems
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.named import SpecBuilder, batched_encoder
from rag_sourcebias.observe.tags import corpus_of
from rag_sourcebias.retrieval.rerank import RerankedSpec, engine_factory
from rag_sourcebias.retrieval.search import (
    DEFAULT_RETRIEVER,
    ENCODER_OPTIONS,
    named_retriever,
    parse_spec,
    refuse_options,
    similarity_of,
)
from rag_sourcebias.retrieval.shards import ShardedDataset, open_sharded, open_vectors
from rag_sourcebias.source.audit import audit_source, measure_source_bias
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport
from rag_sourcebias.source.shards.audit import SHARD_DOCUMENTS, audit_source_sharded
from rag_sourcebias.source.shards.work import LocalEngine, ShardedRetriever
from rag_sourcebias.source.shown import ShownCode, audit_shown
from rag_sourcebias.terminal import options as opt
from rag_sourcebias.terminal.console import deliver, stages
from rag_sourcebias.terminal.options import TableFile, Texts, require_writable, spread

_DATA, _RETRIEVAL, _STATISTICS = "Data", "Retrieval", "Statistics"

# Options of ``audit source`` that belong together.


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """What retrieves, and which controls are made."""

    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="bm25[:k1=…,b=…,stemmer=…] · bm25:paper · dense:<model> · "
            "chroma:<model>[,path=…|url=…,ef_search=…]; repeatable. A model is a "
            "sentence-transformers name or path. app:<module>:<name> asks your application over "
            "the documents that it holds. With another engine than memory: "
            "dense:<model> · "
            "given:<name>,documents=<.npy>,queries=<.npy>. "
            "\\[default: bm25; shard by shard dense:all-MiniLM-L6-v2]",
            rich_help_panel=_RETRIEVAL,
        ),
    ] = None
    id_key: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Where the id of the data stands in the metadata of what app: returns "
            "(default: what fits), or the column of the document in --tags.",
            rich_help_panel=_RETRIEVAL,
        ),
    ] = None
    rerank: Annotated[
        list[str] | None,
        typer.Option(
            help="Rerank the first --retriever: a cross-encoder's name or path, or ql:<causal LM> "
            "for query likelihood; repeatable.",
            rich_help_panel=_RETRIEVAL,
        ),
    ] = None
    depth: opt.Depth = 100
    rerank_depth: Annotated[
        int,
        typer.Option(
            min=1, help="Documents per query that are reranked.", rich_help_panel=_RETRIEVAL
        ),
    ] = 100
    cache: opt.Cache = None
    sole_corpus: Annotated[
        bool,
        typer.Option(help="Also score each source's corpus alone.", rich_help_panel=_STATISTICS),
    ] = True
    length_matched: Annotated[
        bool | None,
        typer.Option(
            help="Also retrieve with pairs cut to equal length, which encodes half of the texts "
            "again. \\[default: with BM25, and up to 5,000 documents]",
            show_default=False,
            rich_help_panel=_STATISTICS,
        ),
    ] = None
    text_statistics: Annotated[
        bool,
        typer.Option(
            "--text-statistics",
            help="Also describe the texts: length, and what rewrites keep of their originals "
            "(BLEU, METEOR, ROUGE-L, word overlap). Needs the extra text.",
            rich_help_panel=_STATISTICS,
        ),
    ] = False
    settings_strip: Annotated[
        bool,
        typer.Option(
            help="Also retrieve with other usual k1 and b of BM25.", rich_help_panel=_STATISTICS
        ),
    ] = True


# Options for work that is done shard by shard.


_SCALE = "Large corpora"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where and how the shards of a corpus are worked on."""

    panel = _SCALE

    engine: Literal["memory", "local", "ray"] = setting(
        "memory",
        "memory: everything at once. local: one shard of the corpus after another, in "
        "bounded memory. ray: shards on all workers of a Ray cluster. The numbers are those of "
        "memory with --copies no.",
    )
    workers: int | None = setting(None, "Workers of --engine ray. \\[default: one per core]")
    address: str | None = setting(
        None,
        "Ray cluster to use, host:port of its head node, or auto. \\[default: start one "
        "on this machine]",
    )
    work_folder: Path | None = setting(
        None,
        "Where vectors and results of shards are kept; a stopped audit goes on from it. "
        "All workers must see it. \\[default: shards in the cache folder]",
    )
    shard_documents: int = setting(
        SHARD_DOCUMENTS, "Documents of a shard, a multiple of 1,024.", least=1
    )

    def __post_init__(self) -> None:
        if self.engine != "ray" and (self.workers is not None or self.address is not None):
            raise DataError("--workers and --address are of --engine ray")

    def started(self) -> Engine:
        """Return the engine for shards; nothing is started before it is needed."""
        return (
            LocalEngine()
            if self.engine == "local"
            else engine_factory(self.engine)(workers=self.workers, address=self.address)
        )


# ``audit source`` on a corpus that is worked on shard by shard.


def audit_shards(
    folder: Path | None, asked: Retrieval, scale: Scale, *, split: str, config: AuditConfig
) -> SkewReport:
    """Audit the corpus of a folder without holding it."""
    if folder is None:
        raise DataError(
            f"--engine {scale.engine} reads a corpus from its folder shard by shard; give a BEIR "
            "folder (samples and named data sets are small: use --engine memory)"
        )
    for option, given in (
        ("--text-statistics", asked.text_statistics),
        ("--rerank", asked.rerank),
    ):
        if given:
            raise DataError(
                f"{option} needs the whole corpus in memory: use --engine memory, or leave it out"
            )
    data = open_sharded(folder, split=split, shard_documents=scale.shard_documents)
    specs = [_retriever(text, data) for text in asked.retriever or ["dense:all-MiniLM-L6-v2"]]
    with stages() as progress, closing(scale.started()) as engine:
        return audit_source_sharded(
            data,
            specs,
            work_folder=scale.work_folder or cache_dir() / "shards",
            engine=engine,
            config=config,
            depth=asked.depth,
            shard_documents=scale.shard_documents,
            sole_corpus=asked.sole_corpus,
            length_matched=asked.length_matched,
            on_stage=progress.begin,
            on_done=progress.advance,
        )


def _retriever(text: str, data: ShardedDataset) -> ShardedRetriever:
    spec = parse_spec(text)
    options = dict(spec.options)
    similarity = similarity_of(options)
    if spec.kind == "dense" and spec.model:
        refuse_options(f"retriever {text!r}", options, (*ENCODER_OPTIONS, "similarity"))
        recipe = partial(batched_encoder, spec.model, options)
        recipe()  # a model that is not there is refused before the corpus is read
        return ShardedRetriever(
            name=f"dense:{spec.model}",
            make_encoder=recipe,
            similarity=similarity,
        )
    if spec.kind == "given":
        files = {key: options.pop(key, "") for key in ("documents", "queries")}
        refuse_options(f"retriever {text!r}", options, ("documents", "queries", "similarity"))
        if missing := [key for key, value in files.items() if not value]:
            raise DataError(
                f"retriever {text!r} names no {' and no '.join(missing)}; write "
                "given:<name>,documents=<file.npy>,queries=<file.npy>"
            )
        return ShardedRetriever(
            name=f"given:{spec.model}" if spec.model else "given",
            vectors=open_vectors(
                Path(files["documents"]),
                Path(files["queries"]),
                n_documents=data.corpus.shards[-1].rows.stop,
                n_queries=data.n_query_rows,
            ),
            similarity=similarity,
        )
    raise DataError(
        f"retriever {text!r} cannot work shard by shard; there are dense:<model> and "
        "given:<name>,documents=<file.npy>,queries=<file.npy>, others need --engine memory"
    )


# ``audit``: measure skew on a data set or on finished runs.


@spread
def source(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="BEIR folder: queries.jsonl, qrels/<split>.tsv and corpus/<source>.jsonl per "
            "source (same _id = same document rewritten).",
        ),
    ] = None,
    *,
    sample: opt.Sample = False,
    dataset: opt.DatasetName = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="Finished ranking instead of retrieving: TREC or MS MARCO lines, JSON, CSV, TSV "
            "or Parquet, plain or packed; repeatable. Needs --qrels and --tags.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a --run in place of its own, once for each in their order.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC or BEIR qrels.", rich_help_panel=_DATA)
    ] = None,
    tags: Annotated[
        Path | None,
        typer.Option(
            help="Table (tsv, csv, jsonl) with doc_id and source, and optionally pair_id and "
            "style; detected: the tags that --verified was drawn with.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Column of the source in --tags.", rich_help_panel=_DATA)
    ] = None,
    grade_scale: Annotated[
        float,
        typer.Option(
            help="Multiply grades by this: 2 where they are 0, .5 and 1.", rich_help_panel=_DATA
        ),
    ] = 1.0,
    verified: Annotated[
        Path | None,
        typer.Option(
            help="Sheet of rag-sourcebias tag verify --run, filled in: corrects Relative Δ for "
            "wrong tags of a detector, of finished runs or of a data set (then without repeats).",
            rich_help_panel=_DATA,
        ),
    ] = None,
    split: opt.Split = "test",
    asked: Retrieval,
    statistics: AuditConfig,
    clusters: opt.ClusterFile,
    copies: Annotated[
        str,
        typer.Option(
            help="Near-duplicates of one source count as one document: words finds those that "
            "share most of their words, a table with doc_id and group says which are, no counts "
            "each one by one.",
            rich_help_panel=_STATISTICS,
        ),
    ] = "words",
    scale: Scale,
    report: opt.ReportFolder = None,
    texts: Texts = None,
    table: TableFile = None,
) -> None:
    """Measure whether rankings favour human-written or LLM-written documents.

    Scores every source on the mixed corpus (NDCG, MAP), reports Relative Δ with intervals and
    corrected tests, and checks what else could explain it: ties, length, content.

    For example:

        rag-sourcebias audit source --sample --retriever bm25 --report report

        rag-sourcebias audit source path/to/beir --retriever dense:all-MiniLM-L6-v2

        rag-sourcebias audit source my-data --retriever app:my_app.search:retriever

        rag-sourcebias audit source --run bm25.run --qrels qrels.txt --tags tags.tsv

        rag-sourcebias audit source --run bm25.run --qrels qrels.txt --tags detected \
--verified sheet.csv

        rag-sourcebias audit source big --engine local --retriever dense:all-MiniLM-L6-v2
    """
    if verified is not None and copies != "words":
        raise DataError("--copies: documents that were verified count one by one; leave it out")
    if group and tags is None:
        raise DataError("--group is a column of --tags")
    require_writable(report)
    if name and not run:
        raise DataError("--name names a --run; there is none")
    known = clusters.read()
    load = partial(_load, folder, sample=sample, dataset=dataset, split=split, scale=grade_scale)
    given = any((folder, sample, dataset))
    if run or qrels or (not given and (tags or verified)):
        if given or asked.retriever or asked.rerank:
            raise DataError("--run, --qrels and --tags replace a data set and retrievers")
        if asked.text_statistics:
            raise DataError("--text-statistics needs texts, and finished runs hold none")
        columns = {"doc_id": asked.id_key, "source": group}
        found = _audit_runs(
            run,
            qrels,
            tags,
            verified,
            columns,
            run_names=name or (),
            grade_scale=grade_scale,
            config=statistics,
            clusters=known,
            copies=copies,
        )
    elif tags or verified:
        found = _audit_verified(
            load, asked, verified, tags, engine=scale.engine, config=statistics, clusters=known
        )
    elif scale.engine == "memory":
        found = _audit(load(), asked, statistics, known, copies)
    else:
        if known is not None or statistics.merge_llms or copies not in ("words", "no"):
            raise DataError("--cluster-file, --copies and --merge-llms need --engine memory")
        where = None if sample or dataset else folder
        found = audit_shards(where, asked, scale, split=split, config=statistics)
    named = opt.typed(ctx, "folder", "sample", "dataset", "split", "baseline_source", "grade_scale")
    deliver(replace(found, inputs=named), report, texts=texts, table=table)


def _specs(asked: Retrieval, progress: Stages) -> list[RetrieverSpec]:
    builder = SpecBuilder(asked.cache, progress.advance, asked.id_key)
    specs = [named_retriever(text, builder) for text in asked.retriever or [DEFAULT_RETRIEVER]]
    return specs + [
        RerankedSpec(specs[0], builder.reranker(model), depth=asked.rerank_depth)
        for model in asked.rerank or []
    ]


def _audit(
    data: Dataset,
    asked: Retrieval,
    config: AuditConfig,
    clusters: Mapping[str, str] | None,
    copies: str,
) -> SkewReport:
    with stages() as progress:
        return audit_source(
            data,
            _specs(asked, progress),
            config=config,
            depth=asked.depth,
            sole_corpus=asked.sole_corpus,
            length_matched=asked.length_matched,
            text_statistics=asked.text_statistics,
            settings_strip=asked.settings_strip,
            clusters=clusters,
            copies=copies,
            on_stage=progress.begin,
        )


def _audit_verified(
    load: Callable[[], Dataset],
    asked: Retrieval,
    verified: Path | None,
    tags: Path | None,
    *,
    engine: str,
    config: AuditConfig,
    clusters: Mapping[str, str] | None,
) -> SkewReport:
    """Retrieve from the mixed corpus and correct for wrong tags; no repeats, which have none."""
    if verified is None or str(tags or "detected") != "detected" or engine != "memory":
        raise DataError(
            "a data set has its own tags: --tags detected takes those that --verified "
            "sheet.csv was drawn with, under --engine memory"
        )
    if asked.text_statistics or asked.length_matched:
        raise DataError(
            "--text-statistics and --length-matched take tags as they are: leave them out "
            "beside --verified"
        )
    sheet, data = read_verification(verified), load()
    with stages() as progress:
        runs = []
        for spec in _specs(asked, progress):
            progress.begin(f"{spec.name}: retrieving for {len(data.queries):,} queries")
            found = spec.build(data.corpus).retrieve(data.queries, asked.depth)
            runs.append(replace(found, name=spec.name))
    return measure_source_bias(
        runs,
        data.qrels,
        data.corpus.tags if tags is None else _tags_of(sheet),
        config=config,
        name=data.name,
        design=data.design,
        clusters=clusters,
        verified=sheet,
    )


def _tags_of(sheet: Verification) -> TagTable:
    """Return the tags that a sheet was drawn with, and what people found in their place."""
    guessed = sheet.chance.keys() - sheet.truth.keys()
    return TagTable.from_tags(
        (doc, DocTags(source=source, origin="detected" if doc in guessed else "declared"))
        for doc, source in (sheet.tags | sheet.sources()).items()
    )


def _audit_runs(
    run: Sequence[Path] | None,
    qrels: Path | None,
    tags: Path | None,
    verified: Path | None,
    columns: Mapping[str, str | None],
    *,
    run_names: Sequence[str],
    grade_scale: float,
    config: AuditConfig,
    clusters: Mapping[str, str] | None,
    copies: str,
) -> SkewReport:
    if not run or qrels is None or tags is None:
        missing = [
            name
            for name, value in (("--run", run), ("--qrels", qrels), ("--tags", tags))
            if not value
        ]
        raise DataError(f"{', '.join(missing)} missing: finished runs need --run, --qrels, --tags")
    sheet = None if verified is None else read_verification(verified)
    if str(tags) == "detected" and not tags.exists():
        if sheet is None:
            raise DataError(
                "--tags detected: nobody verified them; draw documents with rag-sourcebias tag "
                "verify sheet.csv --run … --qrels …, fill the sheet in and give --verified "
                "sheet.csv"
            )
        table = _tags_of(sheet)
    else:
        table = read_tags(tags, **columns)
    return measure_source_bias(
        read_systems(run, names=run_names),
        read_qrels(qrels, scale=grade_scale),
        table,
        config=config,
        name="+".join(path.name for path in run),
        clusters=clusters,
        copies=copies,
        verified=sheet,
    )


def _load(
    folder: Path | None, *, sample: bool, dataset: str | None, split: str, scale: float
) -> Dataset:
    if sum((bool(folder), sample, bool(dataset))) != 1:
        raise DataError(
            "give one data set: a BEIR folder, --sample, --dataset <name>, or --run with --qrels "
            "and --tags"
        )
    if folder is not None:
        return read_beir(folder, split=split, grade_scale=scale)
    return load_sample(dataset or "crowdrag-rewrites")


# ``audit app``: what an application holds and shows, where nothing was judged.


def app(
    retriever: Annotated[
        str, typer.Argument(help="app:<module>:<name> of your application, or a name as for audit.")
    ] = DEFAULT_RETRIEVER,
    *,
    sample: opt.Sample = False,
    store: Annotated[
        str | None,
        typer.Option(
            help="What it searches: chroma:<folder or address>, corpus:<folder or file>, or "
            "app:<module>:<name> of a vector store or index.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions as users ask them: a text file with one a line, or a table.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(help="Collection, where the store holds several.", rich_help_panel=_DATA),
    ] = None,
    tags: Annotated[
        Path | None,
        typer.Option(
            help="Kept beside it: a table with doc_id and source, or the file of tag apply "
            "--sidecar.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    id_key: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Where the id of the store stands in the metadata of what comes back.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    cutoff: Annotated[
        int, typer.Option(min=1, help="Documents that a reader sees.", rich_help_panel=_STATISTICS)
    ] = 5,
    depth: opt.Depth = 100,
    baseline_source: opt.BaselineSource = "human",
    confidence_level: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Of intervals.", rich_help_panel=_STATISTICS)
    ] = 0.95,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Folder for a sheet of what to judge, with what an audit takes."),
    ] = None,
    n_sheet: Annotated[int, typer.Option("-n", min=1, help="Questions of the sheet.")] = 30,
    seed: Annotated[int, typer.Option(help="Draws them.")] = 0,
    cache: opt.Cache = None,
    report: opt.ReportFolder = None,
    table: TableFile = None,
) -> None:
    """Measure what an application holds of each source, and what it shows; no judgments needed.

    Asks your application the questions and compares the share of each source among the first
    documents with its share of the store. With --sheet it draws what to judge for a verdict on
    relevance.

    For example:

        rag-sourcebias audit app --sample

        rag-sourcebias audit app app:my_app.search:retriever --store chroma:db --questions asked.txt

        rag-sourcebias audit app bm25 --store corpus:my-data --questions asked.txt --sheet sheet
    """
    require_writable(report)
    n_given = (store is not None) + (questions is not None)
    if n_given != (0 if sample else 2):
        raise DataError("give --store and --questions, or --sample alone")
    with stages() as progress:
        spec = named_retriever(retriever, SpecBuilder(cache, progress.advance, id_key))
        if sample:
            data = load_sample()
            corpus, name, asked = data.corpus, data.name, data.queries
        else:
            progress.begin(f"reading {store}")
            corpus, name = corpus_of(store, collection=collection, tags=tags)
            asked = read_questions(questions)
        progress.begin(str(ShownCode.ASKING(system=spec.name, n=len(asked))))
        found = audit_shown(
            spec, corpus, asked, store=name, cutoff=cutoff, depth=depth,
            confidence_level=confidence_level, baseline_source=baseline_source, sheet=sheet,
            n_sheet=n_sheet, rng=seed,
        )  # fmt: skip
    deliver(found, report, table=table)
