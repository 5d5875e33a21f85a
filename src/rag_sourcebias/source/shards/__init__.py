"""Audits of corpora that do not fit in memory, a shard at a time or on many machines."""
