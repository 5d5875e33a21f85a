"""Import OpenTelemetry's API before any module of this package does, or say how to install it."""

from rag_sourcebias_integrations._require import require

require("opentelemetry.metrics", package="opentelemetry-api", extra="otel", feature="OpenTelemetry")
