"""Adapters for the retrieval frameworks, one package per framework."""
