"""Watch retrieval in production: an event log, a monitor with alarms, a dashboard."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
