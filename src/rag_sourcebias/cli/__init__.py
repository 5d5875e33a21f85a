"""The command line: the application, and what its commands share."""

import lazy_loader

# Importing a part of it does not import every command.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
