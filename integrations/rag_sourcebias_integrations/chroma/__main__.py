"""After an encoder swap that was killed: python -m rag_sourcebias_integrations.chroma ./db wiki."""

import argparse
import sys

from rag_sourcebias.core.errors import SourceBiasError
from rag_sourcebias_integrations.chroma.migration import restore_collection
from rag_sourcebias_integrations.chroma.tagging import open_stored


def main() -> int:
    """Give a collection its name again, and say how many documents it holds."""
    parser = argparse.ArgumentParser(
        prog="python -m rag_sourcebias_integrations.chroma",
        description="Give a collection its name again after an encoder swap that was killed. "
        "Where nothing was interrupted, nothing is changed. Then run the migration again: it goes "
        "on where it was.",
    )
    parser.add_argument("store", help="folder of a Chroma database, or http://host:port")
    parser.add_argument("collection", help="name that applications open")
    asked = parser.parse_args()
    try:
        restored = restore_collection(open_stored(asked.store), asked.collection)
    except SourceBiasError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    sys.stdout.write(f"{restored.name}: {restored.count()} documents\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
