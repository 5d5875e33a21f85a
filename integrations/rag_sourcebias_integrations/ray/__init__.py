"""Ray: work on many items by the workers of a cluster, or of this machine."""

from rag_sourcebias_integrations.ray.engine import RayEngine, ray_engine

__all__ = ["RayEngine", "ray_engine"]
