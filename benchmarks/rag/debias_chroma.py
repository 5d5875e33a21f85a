"""From pairs to another encoder in a running application (LangChain, Chroma), with proof; offline.

    python benchmarks/rag/debias_chroma.py [--pairs 160] [--report FOLDER]
    python benchmarks/rag/debias_chroma.py --data FOLDER --fit train --judge dev

An application answers from passages by people and their rewrites by an LLM. A projection is fitted
on some of the pairs, written as a model folder, and judged on queries whose pairs it has not seen.
The stored vectors are projected, not encoded again, into a copy of the collection; both are asked
while only the old one answers; then the application is switched, and back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from operator import ne
from pathlib import Path

sys.path.append(sys.path.pop(0))  # this file is called like a package it imports

import numpy as np
from langchain_chroma import Chroma
from langchain_core.documents import Document
from skew_table import print_skew

from rag_sourcebias.core.data import Qrels
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.core.tags import to_metadata, training_pairs, twin_texts
from rag_sourcebias.debias.audit import measure_debias
from rag_sourcebias.debias.data import DebiasMethod
from rag_sourcebias.debias.fit import fit_source_projection
from rag_sourcebias.debias.words import headline
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.report.render import write_report
from rag_sourcebias.retrieval.cache import CachedEncoder, VectorCache
from rag_sourcebias.retrieval.projection import ProjectedEncoder
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.migration import migrate_projection
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.retriever import ShadowedRetriever

MODEL = "all-MiniLM-L6-v2"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=160, help="pairs of the sample to use")
    parser.add_argument("--data", help="BEIR folder with corpus/<source>.jsonl, not the sample")
    parser.add_argument("--fit", default="train", help="its split whose pairs are fitted on")
    parser.add_argument("--judge", default="dev", help="its split that is judged on")
    parser.add_argument("--report", help="folder for the before/after report")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run(Path(folder), parser.parse_args())


def run(folder, options):
    if options.data:
        fit, judge = (read_beir(options.data, split=s) for s in (options.fit, options.judge))
    else:
        fit, judge = halves(load_sample(), options.pairs)
    encoder = CachedEncoder(SentenceEncoder(MODEL), VectorCache(folder / "vectors.sqlite"))
    client = open_client(folder / "chroma")
    questions = [query.text for query in judge.queries]

    store = open_app(client, encoder)
    add_documents(store, judge.corpus)
    print(f"The application with {MODEL}:")
    first = observe(store, questions, judge.corpus)

    # Pairs that a judged query asks for are left out of the fit.
    twins = twin_texts(fit.corpus, qrels=fit.qrels, exclude=training_pairs(judge).twins.pair_ids)
    try:
        projection = fit_source_projection(twins, encoder)
    except InsufficientDataError as error:
        print(f"\nFour directions: {error}. The mean direction is taken instead.")
        projection = fit_source_projection(twins, encoder, method="mean")
    model = write_projected_model(MODEL, projection, folder / "debiased")
    specs = DenseSpec(encoder), DenseSpec(ProjectedEncoder(encoder, projection, name="debiased"))
    made = DebiasMethod(name="debiased", kind="projection", settings={}, fitted_on=fit.name)
    texts = twins.baseline_texts
    report = measure_debias(specs[0], specs[1:], [judge], methods=[made], fitted_texts=texts)
    print(f"\nFitted on {len(twins)} pairs ({projection.method}). {headline(report)}")
    if options.report:
        print(f"Report: {write_report(report, options.report)['html']}")

    started = time.perf_counter()
    collection = client.get_collection("passages", embedding_function=None)
    migration = migrate_projection(collection, projection, client=client, encoder=model)
    print(f"\n{migration.n_documents} stored vectors projected, none encoded again: ", end="")
    print(f"{time.perf_counter() - started:.1f} s.")

    after = SentenceEncoder(model)
    candidate = open_app(client, after, migration.shadow_name)
    both = (one.as_retriever(search_kwargs={"k": 5}) for one in (store, candidate))
    shadowed = ShadowedRetriever(*both, depth=5, capacity=len(questions))
    answers = [[d.id for d in shadowed.invoke(text)] for text in questions]
    shadowed.close(timeout=None)
    compared = shadowed.comparison.summary()
    print(
        f"Only the old one answered: {answers == first}. {compared.n_queries} queries compared: ",
        end="",
    )
    print(f"{compared.overlap:.0%} of the documents are the same.")

    migration.switch()
    print("\nThe application after the switch:")
    second = observe(open_app(client, after), questions, judge.corpus)
    migration.roll_back()
    retriever = open_app(client, encoder).as_retriever(search_kwargs={"k": 5})
    again = [[d.id for d in retriever.invoke(text)] for text in questions]
    changed = sum(map(ne, first, second))
    print(f"\nThe switch changed the passages of {changed} of {len(questions)} questions.")
    print(f"After the roll-back they are as before: {again == first}.")


def halves(sample, n):
    """Every other query with both versions of its passage, and the rest; the corpus is shared."""
    corpus = sample.corpus.take(np.arange(2 * min(n, len(sample.queries))))
    for half, queries in (("fit", sample.queries[:n:2]), ("judge", sample.queries[1:n:2])):
        rows = ((q.query_id, f"{q.query_id}@{s}", 1) for q in queries for s in corpus.tags.counts())
        name = f"{sample.name}/{half}"
        yield replace(
            sample, name=name, corpus=corpus, queries=queries, qrels=Qrels.from_rows(rows)
        )


def open_app(client, encoder, name="passages"):
    space = {"hnsw:space": "cosine"}
    return Chroma(name, EncoderEmbeddings(encoder), client=client, collection_metadata=space)


def add_documents(store, corpus):
    tags = corpus.tags
    documents = [Document(t, id=i, metadata=to_metadata(tags.get(i))) for i, t in corpus]
    for start in range(0, len(documents), 1_000):
        store.add_documents(documents[start : start + 1_000])


def observe(store, questions, corpus):
    observer = ExposureObserver()
    retriever = store.as_retriever(search_kwargs={"k": 5})
    with instrument(retriever, observer) as handle:
        found = [[d.id for d in retriever.invoke(text)] for text in questions]
    print_skew(observer.counts(), corpus, handle.dropped.total)
    return found


if __name__ == "__main__":
    main()
