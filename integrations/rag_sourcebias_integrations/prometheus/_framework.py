"""Import prometheus_client before any module of this package does, or say how to install it."""

from rag_sourcebias_integrations._require import require

require("prometheus_client", package="prometheus-client", extra="prometheus", feature="Prometheus")
