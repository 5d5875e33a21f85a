"""Why a retriever favours a source: spectra, geometry, perplexity, and what they account for."""
