"""The command line: the application, and what its commands share."""


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from rag_sourcebias.cli.app import main as run  # which imports every command

    run()
