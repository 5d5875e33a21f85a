"""The durable log of retrievals: one SQLite file, and Parquet for what leaves it."""
