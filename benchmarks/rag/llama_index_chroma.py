"""A small RAG application with LlamaIndex and Chroma, observed by one line; runs offline.

    python benchmarks/rag/llama_index_chroma.py [--pairs 160] [--answers 2] [--plain]

It indexes the bundled sample (160 passages by people and their rewrites by an LLM) with
all-MiniLM-L6-v2, retrieves five passages for every question, answers the first few with SmolLM2,
and prints how much of the ranking each source got. ``--plain`` leaves tags and observation out,
for comparison: the answers are the same.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import chromadb
import numpy as np
from llama_index.core import PromptTemplate, StorageContext, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import TextNode
from llama_index.vector_stores.chroma import ChromaVectorStore
from skew_table import print_answers, print_skew

from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.causal import LocalCompleter
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.tagging.rules import IdTagger
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.llama_index.tagging import SourceTagger

PROMPT = PromptTemplate(
    "Use the passages to answer in one sentence.\n\n{context_str}\n\nQuestion: {query_str}\nAnswer:"
)


class SmolLM2(CustomLLM):
    """LlamaIndex's kind of LLM over the packaged model."""

    @cached_property
    def _completer(self) -> LocalCompleter:
        return LocalCompleter("smollm2", chat=True)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8192, num_output=40, model_name="smollm2")

    def complete(self, prompt: str, *_: Any, **__: Any) -> CompletionResponse:
        found = self._completer.complete(prompt, max_tokens=40, temperature=0.0, seed=0)
        return CompletionResponse(text=found.text)

    def stream_complete(self, prompt: str, *_: Any, **__: Any) -> Any:
        yield self.complete(prompt)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=160, help="pairs indexed, questions asked")
    parser.add_argument("--answers", type=int, default=2, help="questions also answered")
    parser.add_argument("--plain", action="store_true", help="neither tags nor observation")
    options = parser.parse_args()

    sample = load_sample()
    corpus = sample.corpus.take(np.arange(2 * min(options.pairs, len(sample.queries))))
    nodes = [
        TextNode(id_=doc_id, text=text)
        for doc_id, text in zip(corpus.doc_ids, corpus.texts, strict=True)
    ]
    if not options.plain:
        nodes = SourceTagger([IdTagger()])(nodes)
    collection = chromadb.EphemeralClient().create_collection(
        "sample", metadata={"hnsw:space": "cosine"}
    )
    index = VectorStoreIndex(
        nodes,
        storage_context=StorageContext.from_defaults(
            vector_store=ChromaVectorStore(chroma_collection=collection)
        ),
        embed_model=EncoderEmbedding(SentenceEncoder("all-MiniLM-L6-v2")),
    )

    retriever = index.as_retriever(similarity_top_k=5)
    engine = index.as_query_engine(llm=SmolLM2(), similarity_top_k=5, text_qa_template=PROMPT)

    questions = [query.text for query in sample.queries[: options.pairs]]
    answered = questions[: options.answers]
    observer = ExposureObserver()
    watching = nullcontext() if options.plain else instrument("llama-index", observer)
    with watching as handle:
        print_answers(answered, [str(engine.query(question)) for question in answered])
        for question in questions[options.answers :]:
            retriever.retrieve(question)
    if handle is not None:
        print_skew(observer.counts(), corpus, handle.dropped.total)


if __name__ == "__main__":
    main()
