"""Range top-k index: who must be sent what when entries change, of all who hold the k best entries of a range.

After Yu, Agarwal and Yang, "Processing and notifying range top-k subscriptions" (ICDE 2012). Read `layout`, `sequence` (the
entries in order), `staircase` (who holds an entry), `sparse` (only where somebody is), `change`, `net` (whole batches),
`output`, `index` (the classes that own the arrays).
"""

from tidings.families.topk.kernels.range_topk.index import NetRangeTopkIndex, RangeTopkIndex, Sends

__all__ = ["NetRangeTopkIndex", "RangeTopkIndex", "Sends"]
