"""Import LangChain before any module of this package does, or say how to install it."""

from rag_sourcebias_integrations._require import require

require("langchain_core", package="langchain-core", extra="langchain", feature="LangChain")
