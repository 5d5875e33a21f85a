"""Which writing styles a retriever favours, in documents and queries."""
