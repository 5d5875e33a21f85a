"""A small RAG application with LangChain and Chroma, observed by one line; runs offline.

    python benchmarks/rag/langchain_chroma.py [--pairs 160] [--answers 2] [--plain]

It indexes the bundled sample (160 passages by people and their rewrites by an LLM) with
all-MiniLM-L6-v2, retrieves five passages for every question, answers the first few with SmolLM2,
and prints how much of the ranking each source got. ``--plain`` leaves tags and observation out,
for comparison: the answers are the same.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

sys.path.append(sys.path.pop(0))  # this file is called like a package it imports

import numpy as np
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from skew_table import print_answers, print_skew

from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.causal import LocalCompleter
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.tagging.rules import IdTagger
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.vectorstore import SourceTagger

PROMPT = PromptTemplate.from_template(
    "Use the passages to answer in one sentence.\n\n{passages}\n\nQuestion: {question}\nAnswer:"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=160, help="pairs indexed, questions asked")
    parser.add_argument("--answers", type=int, default=2, help="questions also answered")
    parser.add_argument("--plain", action="store_true", help="neither tags nor observation")
    options = parser.parse_args()

    sample = load_sample()
    corpus = sample.corpus.take(np.arange(2 * min(options.pairs, len(sample.queries))))
    documents = [
        Document(id=doc_id, page_content=text)
        for doc_id, text in zip(corpus.doc_ids, corpus.texts, strict=True)
    ]
    if not options.plain:
        documents = list(SourceTagger([IdTagger()]).transform_documents(documents))
    store = Chroma(
        collection_name="sample",
        embedding_function=EncoderEmbeddings(SentenceEncoder("all-MiniLM-L6-v2")),
        collection_metadata={"hnsw:space": "cosine"},
    )
    store.add_documents(documents)

    retriever = store.as_retriever(search_kwargs={"k": 5})
    llm = LocalCompleter("smollm2", chat=True)
    answer = (
        {
            "passages": retriever | (lambda found: "\n".join(d.page_content for d in found)),
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | RunnableLambda(
            lambda p: llm.complete(p.to_string(), max_tokens=40, temperature=0.0, seed=0).text
        )
    )

    questions = [query.text for query in sample.queries[: options.pairs]]
    answered = questions[: options.answers]
    observer = ExposureObserver()
    watching = nullcontext() if options.plain else instrument("langchain", observer)
    with watching as handle:
        print_answers(answered, [answer.invoke(question) for question in answered])
        retriever.batch(questions[options.answers :])
    if handle is not None:
        print_skew(observer.counts(), corpus, handle.dropped.total)


if __name__ == "__main__":
    main()
