"""View lists: many lists of the first k items each, kept up to date by deliveries; what they show is told by difference.

Read `layout` (the lists), `change` (deliveries and differences), `lists` (the class that owns the arrays).
"""

from research.views.topk.view_lists.layout import NONE
from research.views.topk.view_lists.lists import Differences, ViewLists

__all__ = ["NONE", "Differences", "ViewLists"]
