"""``python -m rag_sourcebias``."""

from rag_sourcebias.cli.app import main

if __name__ == "__main__":
    main()
