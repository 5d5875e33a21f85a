"""Watching the ranks that sources and styles get, in production."""
