"""Paired corpora: documents and their rewrites by a language model, validated."""
