"""``python -m rag_sourcebias``."""

from rag_sourcebias.cli import main

if __name__ == "__main__":
    main()
