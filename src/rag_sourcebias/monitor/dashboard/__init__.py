"""A page and a JSON API that show what an event log and its monitor know."""
