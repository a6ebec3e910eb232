"""Box top-k index: who must be sent what when entries change, of all who hold the k best entries of a box of several ranges.

Two kd-trees (Bentley 1975; rebuilt in parts, Overmars 1983), of entries and of points. Read `layout` (the trees), `build`
(items put in and taken out), `query` (the best entries of boxes), `tiles` (regions as boxes), `change`, `index` (the class
that owns the arrays).
"""

from research.strategies.topk.kernels.box_topk.index import DIMS_MAX, BoxTopkIndex

__all__ = ["DIMS_MAX", "BoxTopkIndex"]
