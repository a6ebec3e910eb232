"""Conditions with OR, `<>`, NOT IN and the like as a bounded set of disjuncts, each a conjunction of equalities and ranges.

`terms.py` multiplies a condition out over different columns (once per template); `value_sets.py` has the sets of values that
all conditions on one column reduce to; `template.py` does the rest per subscription.
"""
