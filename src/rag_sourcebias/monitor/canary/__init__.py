"""Canary probes: queries with known twins asked of a live retriever, round after round."""
