"""Range top-k index: who must be sent what when entries change, of all who hold the k best entries of a range.

After Yu, Agarwal and Yang, "Processing and notifying range top-k subscriptions" (ICDE 2012). Read `layout`, `sequence` (the
entries in order), `staircase` (who holds an entry), `change`, `output`, `index` (the class that owns the arrays).
"""

from research.strategies.topk.kernels.range_topk.index import RangeTopkIndex, Sends

__all__ = ["RangeTopkIndex", "Sends"]
