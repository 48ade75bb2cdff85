"""The composition root: the only package that names concrete adapters. Everything heavy is imported when needed."""

from firnline.app.lake import Lake, open_lake
from firnline.app.places import TablePlace, is_large, now_ms
from firnline.app.runs import PlanView

__all__ = ["Lake", "PlanView", "TablePlace", "is_large", "now_ms", "open_lake"]
