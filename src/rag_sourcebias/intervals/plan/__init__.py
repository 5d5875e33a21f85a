"""How many human labels are needed, and what a judge saves."""

from rag_sourcebias.intervals.plan.item_plan import ItemPlan
from rag_sourcebias.intervals.plan.items import plan_item_labels
from rag_sourcebias.intervals.plan.label_plan import LabelPlan
from rag_sourcebias.intervals.plan.labels import plan_labels

__all__ = ["ItemPlan", "LabelPlan", "plan_item_labels", "plan_labels"]
