"""The version, in one place (read by the build and by the report's version block)."""

__version__ = "0.1.0"
