"""Box top-k index: who must be sent what when entries change, of all who hold the k best entries of a box of several ranges.

Two kd-trees (Bentley 1975; rebuilt in parts, Overmars 1983), of entries and of points; each point knows the greatest key that
it holds, as in Yi et al., "Efficient maintenance of materialized top-k views" (ICDE 2003). Read `layout` (the trees), `build`
(items put in and taken out), `query` (searching entries by key), `change`, `index` (the class that owns the arrays).
"""

from research.strategies.topk.kernels.box_topk.index import DIMS_MAX, BoxTopkIndex

__all__ = ["DIMS_MAX", "BoxTopkIndex"]
