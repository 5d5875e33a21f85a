"""Everything handed over: files, objects and tables, as core types."""
