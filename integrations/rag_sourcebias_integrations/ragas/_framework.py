"""Import ragas before any module of this package does, or say how to install it."""

from importlib.metadata import version

from rag_sourcebias.core.errors import MissingExtraError, UnsupportedVersionError, installing

try:
    import ragas  # noqa: F401
except ImportError as error:
    if error.name == "ragas":
        raise MissingExtraError(package="ragas", extra="ragas", feature="ragas") from error
    # ragas 0.4.3 asks for any langchain-community, and imports what 0.4.2 no longer has.
    if error.name is None or not error.name.startswith("langchain_community.chat_models"):
        raise
    raise UnsupportedVersionError(
        f"ragas {version('ragas')} cannot be imported with langchain-community "
        f"{version('langchain-community')} ({error}); versions that go together: "
        f"{installing('ragas')}"
    ) from error
