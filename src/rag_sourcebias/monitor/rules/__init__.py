"""Alert rules for Prometheus and a dashboard for Grafana, on the metrics of a monitor."""

from rag_sourcebias.monitor.rules.writing import RULE_FILES, read_rules, write_rules

__all__ = ["RULE_FILES", "read_rules", "write_rules"]
