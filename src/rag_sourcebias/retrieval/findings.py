"""What is said of a retrieval in a report."""

from rag_sourcebias.core.finding import Code


class RetrievalCode(Code, home="retrieval"):
    """Sentences of retrievers."""

    MATCHED = (
        "Asked over the documents that the application holds: {n} of "
        "{n_all:retrieved document is|retrieved documents are} in the data ({n_id} by id, {n_key} "
        "by metadata, {n_text} by text, {n_part} by a part of the text)."
    )
    AT_MOST = "The application returned at most {n:document|documents} per query."
    FOREIGN = (
        "{share:percent0} of the documents are in {language}, and {retriever} stems and drops "
        "words as in English: use bm25:stemmer={stemmer},stopwords={stopwords}"
    )
