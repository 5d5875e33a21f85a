"""Import LlamaIndex before any module of this package does, or say how to install it."""

from __future__ import annotations

from rag_sourcebias_integrations._require import require

require("llama_index.core", package="llama-index-core", extra="llama-index", feature="LlamaIndex")
